"""Secrets, redaction and properties at their limits, and the words of their errors."""

from __future__ import annotations

import json
import uuid
from typing import NamedTuple

import pytest
from botocore.exceptions import ClientError

from lambdas.shared import secrets
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import BadProperties, Denied, NotFound, Transient
from lambdas.shared.http import Response, RetryPolicy, Session
from lambdas.shared.link_tokens import KeyRing, Link
from lambdas.shared.properties import Properties, declared, parse, prop, properties
from lambdas.shared.redaction import SHOWN, ApiKey, Secret, invocation, redact
from lambdas.shared.secrets import SecretStore, is_secret
from lambdas.snowflake import sql
from tests.support.resource_environment import ManualClock, MemorySecrets
from tests.support.snowflake_context import pair

# --- secrets


@pytest.mark.parametrize(
    ("field", "value", "secret"),
    [
        ("note", "", True),
        ("note", "data team of sales", False),
        ("note", "data team of our sales", True),
        ("note", "a" * 20, False),
        ("note", "a" * 21, True),
        ("note", "A" + "a" * 20, False),
        ("note", "A" * 12, False),
        ("note", "A" * 13, True),
        ("note", "1234", False),
        ("note", "12345", True),
        ("note", "2026-11-29", False),
        ("note", "a.b@c_d", False),
        ("note", "a:/b", False),
        ("note", "a+b", True),
        ("note", "aB", True),
        ("note", " a", True),
        ("pin", "a", True),
        ("pins", "a", False),
        ("PIN code", "a", True),
        ("mySecret", "a", True),
        ("passage", "a", True),
        ("PRIVATE", "a", True),
        ("token", "a", True),
        ("credentials", "a", True),
        ("sasl.jaas", "a", True),
        ("author", "a", True),
        ("monkey", "a", True),
        ("apiKey", "q7Xv2LmP9sTz4kRw", False),
        ("apikey", "a", True),
        ("snowflake_rsa_public_key_1_pem", "q7Xv2LmP9sTz4kRw", False),
    ],
)
def test_which_fields_of_a_secret_are_secret(field, value, secret):
    assert is_secret(field, value) is secret
    assert secrets.hide_fields({field: value}) == {field: Secret(value) if secret else value}


def test_fields_are_hidden_and_revealed():
    hidden = secrets.parse_fields('{"owner": "sales", "apiSecret": "canary", "count": 7, "none": null}')
    assert hidden == {"owner": "sales", "apiSecret": Secret("canary"), "count": "7", "none": "None"}
    assert secrets.reveal_fields(hidden)["apiSecret"] == "canary"
    assert secrets.hide_fields({"apiSecret": Secret("canary"), "owner": Secret("sales")}) == {
        "apiSecret": Secret("canary"),
        "owner": "sales",
    }


@pytest.mark.parametrize("text", ["[]", "7", "null", '"canary"'])
def test_a_value_that_is_no_object_has_no_fields(text):
    with pytest.raises(ValueError, match="the value of a secret is not a JSON object"):
        secrets.parse_fields(text)
    with pytest.raises(NotFound, match="AWS-SECRET-SHAPE  secret it is not a JSON object") as raised:
        SecretStore(MemorySecrets(it=text)).read("it")
    assert raised.value.patience == 0.0


@pytest.mark.parametrize("fields", [{"apiKey": "k"}, {"apiSecret": "canary"}, {"other": "x"}])
def test_half_a_key_is_none(fields):
    with pytest.raises(NotFound, match="AWS-SECRET-SHAPE  secret it lacks apiKey or apiSecret") as raised:
        SecretStore(MemorySecrets(it=json.dumps(fields))).read_key("it")
    assert raised.value.patience == 0.0


class Answering:
    """Answers each call with the code of an error, and keeps what was asked."""

    def __init__(self, code=None):
        self.code = code
        self.asked = []

    def get_secret_value(self, **asked):
        self.asked.append(asked)
        if self.code:
            raise ClientError({"Error": {"Code": self.code, "Message": "canary"}}, "Operation")
        return {"SecretString": "{}"}

    put_secret_value = get_secret_value


def test_the_current_value_is_read_unless_another_stage_is_asked_for():
    client = Answering()
    assert SecretStore(client).read("it") == SecretStore(client).read("it", secrets.PREVIOUS) == {}
    assert client.asked == [
        {"SecretId": "it", "VersionStage": "AWSCURRENT"},
        {"SecretId": "it", "VersionStage": "AWSPREVIOUS"},
    ]


@pytest.mark.parametrize(
    ("code", "of_read", "of_write"),
    [
        ("ResourceNotFoundException", None, NotFound),
        ("AccessDeniedException", Denied, Denied),
        ("InternalServiceError", Transient, Transient),
    ],
)
def test_each_refusal_of_secrets_manager(code, of_read, of_write):
    store = SecretStore(Answering(code))
    if of_read is None:
        assert store.read("it") == {}
    else:
        with pytest.raises(of_read, match="AWS-REFUSED  reading secret it: "):
            store.read("it")
    with pytest.raises(of_write) as refused:
        store.write("it", {}, version="1")
    if of_write is NotFound:
        assert (refused.value.kind.code, refused.value.patience) == ("AWS-SECRET-MISSING", 60.0)
        assert refused.value.what == "secret it does not exist"
    else:
        assert refused.value.what.startswith("writing secret it: ")


def test_a_value_is_written_in_order_with_a_token_of_secret_and_version():
    client = Answering()
    for secret_id, version in (("it", "1"), ("it", "1"), ("it", "2"), ("other", "1")):
        SecretStore(client).write(secret_id, {"b": Secret("canary"), "a": "1"}, version=version)
    assert {asked["SecretString"] for asked in client.asked} == {'{"a": "1", "b": "canary"}'}
    tokens = [asked["ClientRequestToken"] for asked in client.asked]
    assert tokens[0] == tokens[1] == str(uuid.UUID(tokens[0]))
    assert len(set(tokens)) == 3


# --- redaction


def test_a_short_secret_may_be_a_part_of_words():
    long, short = Secret("12345678"), Secret("abcdefg")
    assert redact("12345678 and abcdefg") == f"{SHOWN} and abcdefg"
    assert (bool(long), bool(short), bool(Secret(""))) == (True, True, False)


def test_a_secret_inside_another_is_removed_after_it():
    secrets_of_a_test = [Secret("zzz-inner-secret"), Secret("aaa-zzz-inner-secret-bbb")]
    text = " ".join(secret.reveal() for secret in secrets_of_a_test)
    assert redact(text) == "‹secret› ‹secret›"


def test_a_secret_that_may_be_shown_is_not_removed():
    shown = Secret("may-be-shown", redacted=False)
    assert redact("may-be-shown") == "may-be-shown"
    assert (shown.reveal(), str(shown)) == ("may-be-shown", SHOWN)
    hidden = ApiKey("the-id-of-a-key", Secret("may-not-be-shown"))
    assert redact(f"the-id-of-a-key {hidden.secret.reveal()}") == f"the-id-of-a-key {SHOWN}"


def test_secrets_are_kept_until_the_end_of_the_innermost_invocation():
    with invocation():
        Secret("of-the-outer-invocation")
        with invocation():
            Secret("of-the-inner-invocation")
            assert redact("of-the-outer-invocation of-the-inner-invocation") == f"{SHOWN} {SHOWN}"
        assert redact("of-the-outer-invocation of-the-inner-invocation") == f"{SHOWN} of-the-inner-invocation"
    assert redact("of-the-outer-invocation") == "of-the-outer-invocation"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cflt" + "a" * 20, ""),
        ("cflt" + "a" * 19, "cflt" + "a" * 19),
        ("xcflt" + "a" * 20, "xcflt" + "a" * 20),
        ("Basic " + "a" * 8, "Basic "),
        ("Basic " + "a" * 7, "Basic aaaaaaa"),
        ("Bearer " + "a" * 8, "Bearer "),
        ("Bearer " + "a" * 7, "Bearer aaaaaaa"),
        ("secret: " + "a" * 40, ""),
        ("secret: " + "a" * 39, "secret: " + "a" * 39),
        ("SECRET_ACCESS_KEY : '" + "a" * 40 + "'", "'"),
        ("sessiontoken(" + "a" * 40, ""),
        ("-----BEGIN EC PRIVATE KEY-----\na\n-----END EC PRIVATE KEY-----\nb", "\nb"),
        ("-----BEGIN PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----"),
        ("https://a:b@host", "https://@host"),
        ("https://a@host", "https://a@host"),
        ("/x?Signature=abc&d=e f", "/x f"),
        ("/x?a=b", "/x?a=b"),
    ],
)
def test_what_looks_like_a_secret(text, left):
    assert redact(text).replace(SHOWN, "") == left


def test_a_secret_equals_another_with_its_value_only():
    assert Secret("one") == Secret("one")
    assert Secret("one") != Secret("two")
    assert hash(Secret("one")) == hash(Secret("one")) != hash(Secret("two"))
    assert f"{Secret('one'):>80}" == SHOWN


# --- properties


class BoxOutputs(NamedTuple):
    id: str


@properties
class Box(Properties[BoxOutputs]):
    name: str = prop("What it is called.")
    size: int = prop("How large.", default=3)
    open: bool = prop("Whether it is open.", default=True)
    things: list[str] = prop("What is in it.", default=list)
    labels: dict[str, int] = prop("What is on it.", default=dict)
    level: int = prop("Which shelf.", default=1, one_of=(1, 2))


def test_a_template_has_what_differs_from_the_defaults():
    assert declared(Box(name="a")) == {"name": "a"}
    assert declared(Box(name="", size=3, open=False, things=[], labels={"n": 1})) == {
        "name": "",
        "open": False,
        "labels": {"n": 1},
    }
    nested = declared(Box(name="a", things=["b"], size=0))
    assert nested == {"name": "a", "size": 0, "things": ["b"]}


def test_a_type_knows_its_outputs_and_has_no_problems_of_its_own():
    assert Box.OUTPUTS is BoxOutputs
    assert Properties.OUTPUTS is tuple
    assert (Box.TYPE, Box.CREATE_ONLY, list(Box(name="a").problems())) == ("", (), [])
    with pytest.raises(TypeError):
        Box("a")


@pytest.mark.parametrize("name", ["ServiceToken", "ServiceTimeout", "kind", "repair"])
def test_properties_of_the_lifecycle_are_no_mistakes(name):
    assert parse(Box, {"name": "a", name: "x"}, strict=True) == Box(name="a")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"colour": "red"}, ("colour", "no such property")),
        ({"nam": "red"}, ("nam", "no such property; did you mean name?")),
        ({"lavels": "red"}, ("lavels", "no such property; did you mean labels?")),
        ({"size": "1.5"}, ("size", "'1.5' is not a whole number")),
        ({"size": None}, ("size", "None is not a whole number")),
        ({"open": "yes"}, ("open", "'yes' is neither true nor false")),
        ({"open": 1}, ("open", "1 is neither true nor false")),
        ({"things": [["a"]]}, ("things", "must be text")),
        ({"things": {"a": "b"}}, ("things", "must be a list")),
        ({"labels": {"a": "b"}}, ("labels", "'b' is not a whole number")),
        ({"labels": ["a"]}, ("labels", "must be a map")),
        ({"level": "3"}, ("level", "'3' is none of 1, 2. Which shelf.")),
    ],
)
def test_each_mistake_is_said(given, problem):
    with pytest.raises(BadProperties) as bad:
        parse(Box, {"name": "a", **given}, strict=True)
    assert bad.value.problems == (problem,)


def test_mistakes_are_sorted_by_name_whatever_their_kind():
    with pytest.raises(BadProperties) as bad:
        parse(Box, {"z": "1", "a": "1", "size": "x", "level": "9"}, strict=True)
    assert [name for name, _ in bad.value.problems] == ["a", "level", "name", "size", "z"]
    with pytest.raises(BadProperties) as bad:
        parse(Box, {"z": "1", "size": "x"}, strict=False)
    assert [name for name, _ in bad.value.problems] == ["name", "size"]


def test_values_are_read_at_any_depth():
    given = {"name": True, "open": "FALSE", "things": ["Aa", 1, False], "labels": {1: "2"}, "level": "2"}
    assert parse(Box, given, strict=True) == Box(
        name="true", open=False, things=["Aa", "1", "false"], labels={"1": 2}, level=2
    )


# --- arguments


@pytest.mark.parametrize(
    "call",
    [
        lambda: Secret("x", False),
        lambda: prop("What it is called.", "a"),
        lambda: parse(Box, {"name": "a"}, True),
        lambda: SecretStore(MemorySecrets(it=None)).write("it", {}, "1"),
        lambda: Session(Deadline(ManualClock(), 0), None),
        lambda: Session(Deadline(ManualClock(), 0)).call("GET", "https://127.0.0.1", None),
        lambda: RetryPolicy().run(lambda: Response(200, {}, None), True, Deadline(ManualClock(), 0)),
        lambda: KeyRing("a", Secret("k" * 32)).sign(Link("e", "w", 1, "r"), 0, 1),
        lambda: KeyRing("a", Secret("k" * 32)).verify("a.b.c", 0),
        lambda: sql.word("A", ("A",)),
        lambda: pair().token("A", "U", 0, 60),
    ],
)
def test_arguments_that_are_easily_confused_are_given_by_name(call):
    with pytest.raises(TypeError, match="positional argument"):
        call()
