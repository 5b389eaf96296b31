"""Texts from elsewhere can't break a mail, change its recipients, or add forbidden content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.notifications import message
from lambdas.shared.redaction import Secret

HOSTILE = st.text(st.characters() | st.sampled_from("\r\n\t\x00\u2028\u202e\u200b:[]"), max_size=300)


@given(HOSTILE, HOSTILE)
def test_n9_sns_accepts_every_subject(title, rest):
    """ASCII, fewer than 100 characters, no control character, and a letter, a digit or punctuation at the
    start.
    """
    made = message.build_subject(title, rest)
    assert made.isascii()
    assert 0 < len(made) < 100
    assert made.isprintable()
    assert not made[0].isspace()


@pytest.mark.parametrize(
    "planted",
    [
        "Sales\r\nBcc: thief@example.com",
        "Sales\nSubject: paid",
        "Sales\x0bX-Evil: 1",
        "Sales\u2028Bcc: x",
        "Sales\x85Bcc: x",
    ],
)
def test_n9_a_text_ends_at_a_line_break(planted):
    assert message.build_subject(planted, "2026-W46 - complete") == "[Sales] 2026-W46 - complete"
    assert message.quote_line(planted) == "Sales"


def test_n9_a_long_title_leaves_the_window_the_run_and_the_state():
    made = message.build_subject(
        "A title " * 40, "2026-W46, 15,249 rows, run 20261116T060009Z-5a0c9e12 - complete"
    )
    assert made.endswith("2026-W46, 15,249 rows, run 20261116T060009Z-5a0c9e12 - complete")


def test_n9_letters_beyond_ascii_lose_their_accents_in_subjects_and_stay_in_texts():
    assert message.build_subject("Verkäufe je Région", "fertig") == "[Verkaufe je Region] fertig"
    assert message.quote_line("Verkäufe je Région") == "Verkäufe je Région"


def test_a_long_line_is_cut_to_its_length():
    assert message.to_one_line("x" * 30, 10) == "x" * 9 + "…"
    assert message.to_one_line("x" * 10, 10) == "x" * 10


@given(HOSTILE)
def test_a_line_is_one_line_and_shows_hidden_characters(planted):
    made = message.to_one_line(planted)
    assert len(made.splitlines()) <= 1
    assert len(made) <= message.LINE_LENGTH
    assert not any(message._is_unseen(char) for char in made)


@pytest.mark.parametrize(
    "personal",
    [
        "jo.doe+x@mail.example.com", "jörg@example.com", "+49 170 1234567", "+491701234567", "4111111111111111",
        "DE89370400440532013000", "0123456789",
    ],
)  # fmt: skip
def test_n5_addresses_and_phone_numbers_of_people_are_hidden(personal):
    made = message.quote_line(f"the value {personal} is wrong")
    assert personal not in made
    assert made == f"the value {message.HIDDEN} is wrong"


@pytest.mark.parametrize(
    "harmless",
    [
        "the table's last commit is of 2026-11-15 21:40 UTC, before the window's end",
        "A price is negative. (price: 1,234,567)",
        "2026-W46",
    ],
)
def test_dates_and_counts_in_reasons_stay(harmless):
    assert message.quote_line(harmless) == harmless


@pytest.mark.parametrize(
    "trace",
    [
        "it failed Traceback (most recent call last): File \"x.py\", line 3, in f: ValueError: 'Ms Doe'",
        "it failed\nTraceback (most recent call last):\n  ValueError: 'Ms Doe'",
        "it failed at org.apache.spark.Row.get(Row.scala:12) Ms Doe",
        'it failed File "/opt/x.py", line 3 Ms Doe',
    ],
)
def test_n5_a_trace_is_cut_off(trace):
    assert message.quote_line(trace) == "it failed"


def test_n5_no_secret_passes():
    secret = Secret("hunter2-and-then-some")
    assert "hunter2" not in message.quote_line(f"login with {secret.reveal()} failed")
    assert "X-Amz" not in message.quote_line(
        "see https://b.s3.amazonaws.com/k?X-Amz-Signature=abc0123def&x=1"
    )
