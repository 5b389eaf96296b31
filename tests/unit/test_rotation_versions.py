"""A secret's versions: the requests to Secrets Manager, and when a replaced key may be revoked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.versions import (
    DAY,
    Described,
    SecretVersions,
    Version,
    parse_time_labels,
)
from lambdas.shared import errors
from lambdas.shared.errors import Denied, Refused, Transient
from lambdas.shared.redaction import Secret
from tests.support.scripted_client import ScriptedClient

NOW = 1_790_000_000.0


def to_time(seconds):
    return datetime.fromtimestamp(seconds, UTC)


def open_secret(**answers):
    return SecretVersions(ScriptedClient(**answers), "it")


def raise_by(kind, call):
    with pytest.raises(kind) as raised:
        call()
    return raised.value


# --- what AWS says about a secret


def test_a_secret_is_described():
    answer = {
        "ARN": "arn:it",
        "Name": "its name",
        "VersionIdsToStages": {"v1": ["AWSCURRENT", "x"], "v2": ["AWSPREVIOUS"]},
        "RotationEnabled": True,
        "DeletedDate": to_time(1),
        "LastRotatedDate": to_time(2),
        "NextRotationDate": to_time(3),
        "RotationRules": {"AutomaticallyAfterDays": 4},
        "Tags": [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d"}],
    }
    versions = open_secret(describe_secret=[answer])
    described = versions.describe()
    assert described == Described(
        arn="arn:it",
        name="its name",
        stages={"v1": ("AWSCURRENT", "x"), "v2": ("AWSPREVIOUS",)},
        enabled=True,
        deleted=True,
        last_rotated=2.0,
        next_rotation=3.0,
        rotation_interval=4 * DAY,
        tags={"a": "b", "c": "d"},
    )
    assert versions.client.calls == [("describe_secret", {"SecretId": "it"})]
    assert [described.labelled(label) for label in ("AWSCURRENT", "x", "AWSPREVIOUS", "AWSPENDING")] == [
        "v1",
        "v1",
        "v2",
        "",
    ]


def test_a_secret_of_which_aws_says_little_is_described_too():
    assert open_secret().describe() == Described("it", "it", {}, False, False, None, None, None, {})


@pytest.mark.parametrize(
    ("rules", "seconds"),
    [
        ({"AutomaticallyAfterDays": 1}, DAY),
        ({"AutomaticallyAfterDays": 0, "ScheduleExpression": "rate(1 day)"}, DAY),
        ({"ScheduleExpression": "rate(10 days)"}, 10 * DAY),
        ({"ScheduleExpression": "rate(1 hour)"}, 3600.0),
        ({"ScheduleExpression": "rate(36 hours)"}, 36 * 3600.0),
        ({"ScheduleExpression": "cron(0 8 1 * ? *)"}, None),
        ({"ScheduleExpression": "rate(10 weeks)"}, None),
        ({"ScheduleExpression": "rate(10 days) or so"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_time_between_rotations(rules, seconds):
    assert open_secret(describe_secret=[{"RotationRules": rules}]).describe().rotation_interval == seconds


def test_an_error_of_describing_names_the_secret():
    error = raise_by(Denied, open_secret(describe_secret=["AccessDeniedException"]).describe)
    assert error.what.startswith("describing secret it: AccessDeniedException")


# --- values


def test_a_version_is_read_with_its_time_and_its_fields():
    versions = open_secret(
        get_secret_value=[{"SecretString": '{"a": "b", "n": 1}', "CreatedDate": to_time(5)}]
    )
    version = versions.read("v1")
    assert (version.id, version.created) == ("v1", 5.0)
    assert versions.client.calls == [("get_secret_value", {"SecretId": "it", "VersionId": "v1"})]
    assert Version("v1", 0.0, {"a": "b", "s": Secret("canary")}).texts == {"a": "b"}


def test_fields_are_read_by_their_kind():
    version = Version("v1", 0.0, {"a": "b", "s": Secret("canary")})
    assert [version.get_text(name) for name in ("a", "s", "other")] == ["b", "", ""]
    assert [version.get_secret(name).reveal() for name in ("a", "s", "other")] == ["b", "canary", ""]
    assert "canary" not in repr(version)


@pytest.mark.parametrize("answer", ["ResourceNotFoundException", {}, {"SecretString": ""}])
def test_a_version_without_a_value_is_none(answer):
    assert open_secret(get_secret_value=[answer]).read("v1") is None


def test_no_version_is_read_without_an_id():
    versions = open_secret()
    assert versions.read("") is None
    assert versions.client.calls == []


@pytest.mark.parametrize("text", ["canary", "[1]", "null"])
def test_a_version_that_is_no_object_is_refused(text):
    error = raise_by(Refused, lambda: open_secret(get_secret_value=[{"SecretString": text}]).read("v1"))
    assert error.kind is rotation_errors.FIELDS
    assert error.what == "version v1 of secret it is not a JSON object"


def test_an_error_of_reading_names_the_secret():
    error = raise_by(Transient, lambda: open_secret(get_secret_value=["InternalServiceError"]).read("v1"))
    assert error.what == "reading secret it: InternalServiceError"


@pytest.mark.parametrize(
    ("token", "extra"), [(None, {}), (Secret("canary-of-aws"), {"RotationToken": "canary-of-aws"})]
)
def test_the_request_that_stores_the_pending_value(token, extra):
    versions = open_secret()
    versions.put_pending("v2", {"b": Secret("canary-b"), "a": "1"}, token)
    assert versions.client.calls == [
        (
            "put_secret_value",
            {
                "SecretId": "it",
                "ClientRequestToken": "v2",
                "SecretString": '{"a": "1", "b": "canary-b"}',
                "VersionStages": ["AWSPENDING"],
                **extra,
            },
        )
    ]


def list_writes(versions):
    """Return the calls that write, with what each of them is for."""
    return {
        "storing the new value of": (
            lambda: versions.put_pending("v2", {"a": "1"}, None),
            rotation_errors.NOT_STORED,
        ),
        "making a version current of": (
            lambda: versions.make_current("v2", "v1"),
            rotation_errors.NOT_MOVED,
        ),
        "labelling a version of": (lambda: versions.label_time("v2", NOW), rotation_errors.NOT_MOVED),
        "removing a label of a version of": (lambda: versions.give_up("v2"), rotation_errors.NOT_MOVED),
    }


@pytest.mark.parametrize("doing", list_writes(None))
def test_a_write_that_aws_refuses_has_no_effect_and_says_so(doing):
    for code in ("InvalidParameterException", "ResourceExistsException", "AccessDeniedException"):
        call, kind = list_writes(open_secret(put_secret_value=[code], update_secret_version_stage=[code]))[
            doing
        ]
        error = raise_by(Refused, call)
        assert error.kind is kind
        assert error.what.startswith(f"{doing} secret it: {code}")
    code = "InternalServiceError"
    call, _ = list_writes(open_secret(put_secret_value=[code], update_secret_version_stage=[code]))[doing]
    error = raise_by(Transient, call)
    assert (error.kind, error.what) == (errors.AWS_REFUSED, f"{doing} secret it: {code}")


def test_the_requests_that_move_labels():
    versions = open_secret()
    versions.make_current("v2", "v1")
    versions.label_time("v2", NOW + 0.9)
    versions.give_up("v2")
    stages = {
        "v1": ("AWSCURRENT", "LAKEFERRY-SINCE-1"),
        "v2": ("AWSPENDING", "LAKEFERRY-SINCE-2"),
        "v3": ("AWSPREVIOUS", "LAKEFERRY-SINCE-3"),
        "v4": ("LAKEFERRY-SINCE-4", "somebody's", "LAKEFERRY-SINCE-5"),
        "v5": (),
    }
    versions.remove_old_times(stages)
    assert [(operation, asked.pop("SecretId")) for operation, asked in versions.client.calls] == [
        ("update_secret_version_stage", "it")
    ] * 5
    assert [asked for _, asked in versions.client.calls] == [
        {"VersionStage": "AWSCURRENT", "MoveToVersionId": "v2", "RemoveFromVersionId": "v1"},
        {"VersionStage": f"LAKEFERRY-SINCE-{int(NOW)}", "MoveToVersionId": "v2"},
        {"VersionStage": "AWSPENDING", "RemoveFromVersionId": "v2"},
        {"VersionStage": "LAKEFERRY-SINCE-4", "RemoveFromVersionId": "v4"},
        {"VersionStage": "LAKEFERRY-SINCE-5", "RemoveFromVersionId": "v4"},
    ]


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_value_that_is_replaced_without_a_rotation_leaves_no_label(is_refused):
    moves = ["InvalidParameterException", {}] if is_refused else [{}]
    versions = open_secret(update_secret_version_stage=moves)
    if is_refused:
        raise_by(Refused, lambda: versions.replace_current({"b": "2", "a": "1"}, "v1"))
    else:
        versions.replace_current({"b": "2", "a": "1"}, "v1")
    (_, stored), (_, moved), (_, removed) = versions.client.calls
    token = stored["ClientRequestToken"]
    assert len(token) == 36
    assert stored == {
        "SecretId": "it",
        "ClientRequestToken": token,
        "SecretString": '{"a": "1", "b": "2"}',
        "VersionStages": [f"LAKEFERRY-REPLACING-{token}"],
    }
    assert moved == {
        "SecretId": "it",
        "VersionStage": "AWSCURRENT",
        "MoveToVersionId": token,
        "RemoveFromVersionId": "v1",
    }
    assert removed == {
        "SecretId": "it",
        "VersionStage": f"LAKEFERRY-REPLACING-{token}",
        "RemoveFromVersionId": token,
    }


def test_a_value_that_could_not_be_stored_is_not_made_current():
    versions = open_secret(put_secret_value=["AccessDeniedException"])
    error = raise_by(Refused, lambda: versions.replace_current({"a": "1"}, "v1"))
    assert error.kind is rotation_errors.NOT_STORED
    assert [operation for operation, _ in versions.client.calls] == ["put_secret_value"]


PAGES = [
    {
        "Versions": [
            {"VersionId": "v1", "VersionStages": ["AWSCURRENT"], "CreatedDate": to_time(1)},
            {"VersionId": "v2", "VersionStages": ["x"], "CreatedDate": to_time(2)},
        ],
        "NextToken": "2",
    },
    {"Versions": None, "NextToken": "3"},
    {"Versions": [{"VersionId": "v3"}, {"VersionId": "v4", "VersionStages": ["AWSPENDING", "x"]}]},
]


def test_other_versions_are_those_of_all_pages_without_aws_s_labels():
    values = [{"SecretString": "{}", "CreatedDate": to_time(7)}]
    versions = open_secret(list_secret_version_ids=PAGES, get_secret_value=values)
    assert [version.id for version in versions.list_other_versions()] == ["v2", "v3"]
    asked = {"SecretId": "it", "IncludeDeprecated": True}
    assert [operation for operation, _ in versions.client.calls].count("list_secret_version_ids") == 3
    assert ("list_secret_version_ids", {**asked, "NextToken": "3"}) in versions.client.calls


def test_other_versions_without_a_value_are_left_out():
    versions = open_secret(list_secret_version_ids=PAGES, get_secret_value=["ResourceNotFoundException"])
    assert list(versions.list_other_versions()) == []


@pytest.mark.parametrize(("version", "created"), [("v1", 1.0), ("v2", 2.0), ("v3", None), ("v9", None)])
def test_the_time_at_which_a_version_was_created(version, created):
    assert open_secret(list_secret_version_ids=PAGES).read_created_time(version) == created


def test_an_error_of_listing_names_the_secret():
    versions = open_secret(list_secret_version_ids=["InternalServiceError"])
    error = raise_by(Transient, lambda: versions.read_created_time("v1"))
    assert error.what == "listing the versions of secret it: InternalServiceError"


def test_the_times_in_labels():
    labels = ["AWSCURRENT", "LAKEFERRY-SINCE-12", "LAKEFERRY-SINCE-", "LAKEFERRY-SINCE-1x", "34"]
    assert parse_time_labels([*labels, "LAKEFERRY-SINCE-56"]) == [12.0, 56.0]
    assert parse_time_labels([]) == []
