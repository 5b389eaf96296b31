"""When a replaced key may be revoked, and the context of a rotation."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import pytest

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.strategy import detect_credential_type
from lambdas.rotation.versions import (
    DAY,
    Described,
    Policy,
    RotationContext,
    SecretVersions,
    Version,
    read_context,
)
from lambdas.shared.errors import Refused
from lambdas.shared.secrets import hide_fields

NOW = 1_790_000_000.0


def to_time(seconds):
    return datetime.fromtimestamp(seconds, UTC)


class Vault:
    """Secrets Manager with one answer for each operation."""

    def __init__(self, **answers):
        self.answers = answers

    def __getattr__(self, operation):
        return lambda **asked: self.answers.get(operation, {})


def open_secret(**answers):
    return SecretVersions(Vault(**answers), "it")


def raise_refused(call):
    with pytest.raises(Refused) as raised:
        call()
    return raised.value


GRACE = 7 * DAY
V1 = Version("v1", NOW - 30 * DAY, {})
V2 = Version("v2", NOW - 40 * DAY, {})
DESCRIBED = Described("arn", "it", {"v1": ("AWSCURRENT",)}, True, False, None, None, None, {})


def context(now=NOW, *, current=V1, previous=V2, pending=None, labels=(), page=None, **described):
    stages = {current.id: ("AWSCURRENT", *labels)}
    return RotationContext(
        open_secret(
            list_secret_version_ids=page or {}, describe_secret={"VersionIdsToStages": {"v1": ["x"]}}
        ),
        attrs.evolve(DESCRIBED, stages={**stages, **described.pop("stages", {})}, **described),
        "",
        current,
        previous,
        pending,
        Policy(),
        lambda: now,
    )


def test_two_keys_live_and_a_replaced_one_for_a_week():
    assert Policy() == Policy(keep=2, grace=GRACE)


@pytest.mark.parametrize(
    ("given", "since"),
    [
        ({"last_rotated": V1.created + 5}, V1.created + 5),
        ({"last_rotated": V1.created}, V1.created),
        ({"last_rotated": V1.created - 1}, V1.created + DAY),
        ({}, V1.created + DAY),
        ({"labels": [f"LAKEFERRY-SINCE-{int(V1.created) + 50}"]}, V1.created + 50 + DAY),
        ({"labels": ["LAKEFERRY-SINCE-1"]}, V1.created + DAY),
    ],
)
def test_the_previous_key_may_be_revoked_a_week_after_it_was_replaced(given, since):
    assert not context(since + GRACE - 1, **given).previous_is_revocable
    assert context(since + GRACE, **given).previous_is_revocable


@pytest.mark.parametrize(
    ("labels", "since"),
    [((), V2.created + DAY), ((f"LAKEFERRY-SINCE-{int(V2.created) + 50}",), V2.created + 50 + DAY)],
)
def test_older_keys_may_be_revoked_a_week_after_the_previous_one_became_current(labels, since):
    given = {"stages": {"v2": ("AWSPREVIOUS", *labels)}, "last_rotated": NOW * 2}
    assert not context(since + GRACE - 1, **given).older_are_revocable
    assert context(since + GRACE, **given).older_are_revocable


def test_without_a_previous_key_none_was_replaced():
    assert context(0.0, previous=None).older_are_revocable


def test_a_version_that_becomes_current_a_day_after_it_was_made_needs_a_label():
    assert not context(V1.created + DAY).needs_time_label(V1)
    assert context(V1.created + DAY + 1).needs_time_label(V1)


@pytest.mark.parametrize(
    ("label", "pending", "page", "rotates"),
    [
        ({}, None, None, False),
        ({"v1": ("AWSCURRENT", "AWSPENDING")}, None, None, False),
        ({"v3": ("AWSPENDING",)}, Version("v3", NOW - DAY + 1, {}), None, True),
        ({"v3": ("AWSPENDING",)}, Version("v3", NOW - DAY, {}), None, False),
        (
            {"v3": ("AWSPENDING",)},
            None,
            {"Versions": [{"VersionId": "v3", "CreatedDate": to_time(NOW)}]},
            True,
        ),
        (
            {"v3": ("AWSPENDING",)},
            None,
            {"Versions": [{"VersionId": "v3", "CreatedDate": to_time(1)}]},
            False,
        ),
        ({"v3": ("AWSPENDING",)}, None, {"Versions": [{"VersionId": "v3"}]}, False),
        ({"v3": ("AWSPENDING",)}, None, {"Versions": []}, False),
    ],
)
def test_a_pending_version_says_for_a_day_that_a_rotation_is_running(label, pending, page, rotates):
    assert context(pending=pending, stages=label, page=page).is_rotating is rotates


def test_labels_that_changed_are_noticed():
    changed = context()
    error = raise_refused(changed.require_same_labels)
    assert (error.kind, error.what) == (rotation_errors.CHANGED, "secret it")
    attrs.evolve(changed, described=attrs.evolve(DESCRIBED, stages={"v1": ("x",)})).require_same_labels()


def test_the_versions_of_a_rotation_in_the_order_in_which_a_login_is_tried():
    v3 = Version("v3", NOW, {})
    assert context(pending=v3).labelled == [V1, v3, V2]
    assert context(previous=None).labelled == [V1]


STAGES = {"v1": ["AWSCURRENT"], "v2": ["AWSPREVIOUS"], "v3": ["AWSPENDING"]}


@pytest.mark.parametrize(("token", "pending"), [("", "v3"), ("v4", "v4"), ("v1", None)])
def test_the_context_of_a_rotation(token, pending):
    value = {"SecretString": "{}", "CreatedDate": to_time(NOW)}
    versions = open_secret(describe_secret={"VersionIdsToStages": STAGES}, get_secret_value=value)
    policy = Policy(3, 1.0)
    read = read_context(versions, versions.describe(), token, policy, lambda: NOW)
    assert (read.current.id, read.previous.id, read.token, read.policy) == ("v1", "v2", token, policy)
    assert (read.pending.id if read.pending else None) == pending


def test_a_secret_without_a_current_value_is_refused():
    versions = open_secret(describe_secret={"Name": "its name"})
    error = raise_refused(lambda: read_context(versions, versions.describe(), "", Policy(), lambda: NOW))
    assert (error.kind, error.what) == (rotation_errors.EMPTY, "secret its name has no current value")


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"apiKey": "a", "apiSecret": "b"}, "confluent"),
        ({"account": "a", "user": "b", "privateKey": "c"}, "snowflake"),
        ({"linkKey": "a"}, "links"),
        ({"apiKey": "a", "apiSecret": "", "linkKey": "a"}, "links"),
        ({"apiKey": "a"}, None),
        ({"account": "a", "privateKey": "c"}, None),
        ({"linkKey": ""}, None),
        ({}, None),
    ],
)
def test_the_type_of_a_credential(fields, kind):
    version = Version("v1", NOW, hide_fields(fields))
    if kind:
        assert detect_credential_type(version) == kind
        return
    error = raise_refused(lambda: detect_credential_type(version))
    assert error.kind is rotation_errors.FIELDS
    expected = "apiKey, apiSecret or account, user, privateKey or linkKey"
    assert error.what == f"version v1 has neither {expected}"
