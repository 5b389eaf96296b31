"""How much of a list is in a mail, and how numbers, sizes and long texts look."""

from __future__ import annotations

import re

import pytest

from dev.docs import samples
from lambdas.notifications import message
from lambdas.shared.redaction import Secret
from tests.support.notification_environment import (
    NotificationEnvironment,
    incomplete,
    published,
    record,
)

RUN = "20261116T060009Z-5a0c9e12"
CHECK = {
    "id": "p",
    "severity": "warn",
    "message": "A price is odd.",
    "failed": 1200,
    "of": "rows",
    "passed": False,
}


def manifest(**changed):
    return samples.manifests()[0] | changed


def notified(window, manifests=()):
    env = NotificationEnvironment()
    for document in manifests:
        env.publish(document)
    env.run(record(window))
    env.deliver()
    return env


def list_offered(count):
    (data,) = manifest()["files"][:1]
    files = [data | {"key": f"exports/weekly_sales/{number}.csv"} for number in range(count)]
    (body,) = notified(published(files=files)).topics.bodies()
    return re.findall(r"^- (\d+)\.csv, ", body, re.MULTILINE), "All files are in bucket lake-bucket" in body


@pytest.mark.parametrize(("count", "shown", "more"), [(6, 6, False), (7, 6, True)])
def test_a_mail_names_six_files_and_says_where_the_others_are(count, shown, more):
    assert list_offered(count) == ([str(number) for number in range(shown)], more)


@pytest.mark.parametrize(
    ("role", "key", "is_shown"),
    [
        ("data", "exports/a-b_c=d.CSV", True),
        ("xlsx", "exports/a.xlsx", True),
        ("data", "exports/12345678.csv", True),
        ("data", "exports/123456789.csv", False),
        ("data", "exports/hunter2-and-then-some.csv", False),
        ("data", "exports/a b.csv", False),
        ("data", "exports/ä.csv", False),
        ("data", "", False),
        ("record", "exports/a.csv", False),
        (None, "exports/a.csv", False),
    ],
)
def test_a_file_is_named_if_it_is_for_readers_and_its_name_hides_nothing(role, key, is_shown):
    secret = Secret("hunter2-and-then-some")
    file = {"role": role, "key": key}
    assert message.select_files({"files": [file]}) == [file] * is_shown, secret


@pytest.mark.parametrize("document", [{}, {"files": None}, {"files": []}])
def test_a_document_without_files_names_none(document):
    assert message.select_files(document) == []


@pytest.mark.parametrize(
    ("count", "end"),
    [(11, "Note: 10"), (12, "Note: 11"), (13, "... and 1 more, in the report.")],
)
def test_a_mail_has_twelve_checks_and_notes(count, end):
    (body,) = notified(published(checks=[], notes=[str(number) for number in range(count)])).topics.bodies()
    lines = body.splitlines()
    begins = lines.index("Note: 0")
    listed = lines[begins : lines.index("", begins)]
    assert listed[-1] == end
    assert listed[: min(count, 12)] == [f"Note: {number}" for number in range(min(count, 12))]


def test_a_mail_has_three_figures_in_their_order():
    figures = [{"column": name, "title": name, "unit": None, "total": 1234.5} for name in "abcd"]
    (body,) = notified(published(headline=figures)).topics.bodies()
    assert "\n15,249 rows\na: 1,234.5\nb: 1,234.5\nc: 1,234.5\n\n" in body


@pytest.mark.parametrize(
    ("total", "change"),
    [
        ("1000", "+0.0"),
        ("999.6", "+0.0"),
        ("999.4", "-0.1"),
        ("1110", "+11.0"),
        ("20000", "+1900.0"),
        ("9" * 40, None),
    ],
)
def test_a_change_has_a_sign_and_one_decimal(total, change):
    figure = {"column": "a", "title": "A", "unit": None, "total": total}
    before = {"window": "2026-W45", "totals": {"a": "1000"}}
    env = notified(published(headline=[figure]), manifests=[manifest(previous_window=before)])
    (body,) = env.topics.bodies()
    (line,) = [line for line in body.splitlines() if line.startswith("A: ")]
    assert line == f"A: {message.group_digits(total)}" + (f" ({change} % against 2026-W45)" if change else "")


@pytest.mark.parametrize(
    ("rows", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12345, "12,345 rows")]
)
def test_the_number_of_rows(rows, text):
    assert message.format_rows({"rows": {"rows": rows}}) == text


@pytest.mark.parametrize("document", [{}, {"rows": None}, {"rows": {}}, {"rows": {"rows": None}}])
def test_an_unknown_number_of_rows_is_none(document):
    assert message.format_rows(document) == "0 rows"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0.0 kB"),
        (99_949, "99.9 kB"),
        (99_999, "100.0 kB"),
        (100_000, "0.1 MB"),
        (2_460_000_000, "2,460.0 MB"),
        (5_000_000_000_000, "5,000,000.0 MB"),
    ],
)
def test_the_size_of_a_file(size, text):
    assert message.format_size(size) == text


@pytest.mark.parametrize(
    ("number", "plain", "grouped"),
    [
        ("1142546.38", "1142546.38", "1,142,546.38"),
        (-1000, "-1000", "-1,000"),
        ("9" * 40, "9" * 40, f"9{',999' * 13}"),
        ("9" * 41, message.HIDDEN, message.HIDDEN),
        (f"1.{'0' * 40}", f"1.{'0' * 40}", f"1.{'0' * 40}"),
        ("1.", "1.", "1."),
        ("1e5", "1e5", "1e5"),
        ("many\nlines", "many", "many"),
    ],
)
def test_a_number_is_shown_in_full_and_another_text_as_a_quotation(number, plain, grouped):
    assert message.quote_number(number) == plain
    assert message.group_digits(number) == grouped


@pytest.mark.parametrize(
    ("check", "failed_it"),
    [
        ({"passed": False}, True),
        ({"passed": True}, False),
        ({"passed": None, "unknown": "no earlier window"}, False),
        ({"passed": False, "unknown": None}, True),
    ],
)
def test_which_checks_have_failed(check, failed_it):
    assert message.has_failed(check) is failed_it


def test_checks_without_a_count_of_rows_have_none():
    checks = [
        CHECK | {"of": "file", "message": "The file is odd."},
        CHECK | {"failed": None, "message": "Rows are odd."},
        CHECK | {"passed": True, "message": "All is well."},
    ]
    (body,) = notified(published(checks=checks, notes=[])).topics.bodies()
    assert "\n\nCheck: The file is odd.\nCheck: Rows are odd. (0 rows)\n\nFiles." in body


def test_a_subject_has_at_most_ninety_nine_characters():
    assert message.build_subject("t" * 99, "r" * 10) == f"[{'t' * 86}] {'r' * 10}"
    assert len(message.build_subject("t" * 99, "r" * 10)) == 99
    assert message.build_subject("", "rest") == "[] rest"


def test_a_label_is_cut_in_a_subject_after_twenty_characters():
    (subject,) = notified(incomplete("w" * 21)).topics.subjects()
    assert subject == f"[Weekly sales] {'w' * 20}, run {RUN} - incomplete"


def test_lines_are_cut_at_four_hundred_characters():
    assert message.quote_line("x " * 200) == "x " * 199 + "x"
    assert message.quote_line("xy" * 200) == "xy" * 200
    assert message.quote_line("xy" * 201) == f"{('xy' * 200)[:399]}…"
    hidden = f"{'x' * 395} +491701234567"
    assert message.quote_line(hidden) == f"{'x' * 395} [hi…", "what is private is hidden before the cut"
