"""A secret is shown by `reveal` only."""

from __future__ import annotations

import base64
import copy
import gc
import io
import json
import pickle
import traceback
import urllib.parse
import weakref

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.handlers.runtime import Failed, entry_point
from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError
from lambdas.shared.log import open_log
from lambdas.shared.redaction import SHOWN, ApiKey, Secret, redact

VALUE = 'canary/+"value\\with=signs'


@pytest.mark.parametrize(
    "show",
    [
        str,
        repr,
        lambda secret: f"{secret}",
        lambda secret: f"{secret:>40}",
        lambda secret: f"{secret!r}",
        lambda secret: "%s" % secret,  # noqa: UP031
        lambda secret: repr([secret, {"key": secret}]),
        lambda secret: repr(ApiKey("id", secret)),
        lambda secret: json.dumps({"key": secret}, default=str, ensure_ascii=False),
        lambda secret: repr(attrs.asdict(ApiKey("id", secret))),
    ],
)
def test_a_secret_is_never_shown(show):
    shown = show(Secret(VALUE))
    assert VALUE not in shown
    assert SHOWN in shown


@pytest.mark.parametrize("keep", [json.dumps, pickle.dumps, vars])
def test_a_secret_cannot_be_serialised(keep):
    with pytest.raises(TypeError) as refused:
        keep(Secret(VALUE))
    assert VALUE not in str(refused.value)


def test_a_copy_is_the_same_secret():
    secret = Secret(VALUE)
    assert copy.deepcopy({"key": secret})["key"] is secret
    assert copy.copy(secret).reveal() == VALUE


def test_secrets_are_equal_by_value():
    assert Secret("one") == Secret("one")
    assert Secret("one") != Secret("other")
    assert Secret("one") != "one"
    assert len({Secret("one"), Secret("one")}) == 1


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=40))
def test_a_live_secret_is_redacted_in_any_text(value):
    secret = Secret(value)
    for written in (value, json.dumps({"it": value}), base64.b64encode(value.encode()).decode()):
        assert secret.reveal() not in redact(f"before {written} after").replace(SHOWN, "")


@pytest.mark.parametrize(
    "encode",
    [
        str,
        lambda value: json.dumps(value)[1:-1],
        lambda value: urllib.parse.quote(value, safe=""),
        lambda value: base64.b64encode(value.encode()).decode(),
    ],
    ids=["plain", "JSON", "URL", "base64"],
)
def test_no_part_of_a_secret_stays_whatever_encoding_it_is_in(encode):
    secret = Secret(VALUE)
    assert redact(f"before {encode(secret.reveal())} after") == f"before {SHOWN} after"


def test_a_secret_that_contains_another_is_fully_redacted():
    short = Secret("password-of-one")
    long = Secret("password-of-one-and-of-another")
    assert redact(f"{long.reveal()}, {short.reveal()}") == f"{SHOWN}, {SHOWN}"


def test_a_secret_without_references_is_still_redacted_in_error_and_log(capsys):
    def refused_by_a_vendor():
        raise LakeferryError(
            errors.AWS_REFUSED,
            "value " + Secret("a-password-read-in-a-deeper-frame").reveal() + " was refused",
        )

    with pytest.raises(Failed) as failed, entry_point():
        refused_by_a_vendor()
    assert SHOWN in str(failed.value)
    assert "password" not in str(failed.value) + capsys.readouterr().out


def test_secrets_of_one_invocation_are_forgotten_in_the_next():
    with entry_point():
        read = weakref.ref(Secret("known-until-the-end-of-the-invocation"))
        gc.collect()
        assert read() is not None
    gc.collect()
    assert read() is None


@pytest.mark.parametrize("dies", [0, 1])
def test_one_of_two_equal_secrets_may_be_deleted(dies):
    alive = [Secret("both-the-same"), Secret("both-the-same")]
    del alive[dies]
    assert redact("both-the-same") == SHOWN
    assert alive[0].reveal() == "both-the-same"


@pytest.mark.parametrize(
    "text",
    [
        "cfltAbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
        "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc cut off",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "Bearer eyJhbGciOi.JIUzI1NiIs.abc",
        "https://user:password@host/path",
        "https://bucket.s3.amazonaws.com/x?X-Amz-Date=1&X-Amz-Signature=abcdef0123",
    ],
)
def test_text_that_looks_like_a_secret_is_redacted(text):
    shown = redact(f"before {text} after")
    assert SHOWN in shown
    assert not any(part in shown for part in ("cfltAb", "MIIabc", "dXNlc", "eyJhb", "password", "abcdef0123"))


@pytest.mark.parametrize(
    "text", ["sa-abc123 is Basic", "https://api.confluent.cloud/x?page_token=abc", "a: b @ c"]
)
def test_harmless_text_stays(text):
    assert redact(text) == text


def test_an_error_holds_no_secret():
    secret = Secret("canary-in-an-error")
    error = LakeferryError(errors.UNREACHABLE, f"it answered {secret.reveal()}")
    assert "canary" not in str(error) + repr(error) + repr(error.args)


def test_the_log_holds_no_secret_not_even_in_a_trace():
    secret = Secret("canary-in-the-log")
    stream = io.StringIO()
    log = open_log(stream).bind(kind="topic")
    try:
        raise ValueError(f"refused {secret.reveal()}")
    except ValueError:
        assert "canary" in traceback.format_exc()
        log.error("failed", trace=True, given={"key": secret, "text": secret.reveal()})
    entry = json.loads(stream.getvalue())
    assert (entry["message"], entry["kind"], entry["level"]) == ("failed", "topic", "ERROR")
    assert "ValueError" in entry["trace"]
    assert "canary" not in stream.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SECRET (TYPE s3, KEY_ID 'AKIAEXAMPLE', SECRET '{}')",
        "aws_secret_access_key={}",
        "{{'SecretAccessKey': '{}'}}",
        '"SessionToken": "{}"',
        "SESSION_TOKEN '{}'",
    ],
)
def test_an_aws_key_that_is_named_as_such_is_not_shown(text):
    value = "wJalrXUtnFEMI/K7MDENG+" + "bPxRfiCYEXAMPLEKEY1234"
    shown = redact(text.format(value))
    assert SHOWN in shown
    assert value not in shown
    assert (
        redact("secret lakeferry-dev/confluent/tableflow of 2026")
        == "secret lakeferry-dev/confluent/tableflow of 2026"
    )
