"""The requests that the clean-up sends, and what it concludes from the answers."""

from __future__ import annotations

import json

import attrs
import pytest

from lambdas.custom_resources.cleanup import (
    Cleaner,
    gives_all_to_iam,
    is_table_in,
    list_own_tables,
    lists_all_tables,
)
from lambdas.custom_resources.state import KnownObject, ResourceState
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, Transient
from tests.support.resource_environment import ACCOUNT, ManualClock
from tests.support.scripted_client import ScriptedClient

#: Settings of Lake Formation with which IAM alone decides.
IAM = [{"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}, "Permissions": ["ALL"]}]
OPEN = {"CreateDatabaseDefaultPermissions": IAM, "CreateTableDefaultPermissions": IAM}


def make_cleaner(service, seconds=90, **given):
    clock = ManualClock()
    return Cleaner(lambda name: service, ACCOUNT, Deadline(clock, clock.time() + seconds), **given)


def test_every_request_for_a_bucket_names_the_account_that_owns_it():
    versions = {
        "Versions": [{"Key": "a", "VersionId": "1", "Size": 7}],
        "DeleteMarkers": [{"Key": "b", "VersionId": "2"}],
    }
    s3 = ScriptedClient(
        list_object_versions=[versions, {}],
        list_multipart_uploads=[{"Uploads": [{"Key": "c", "UploadId": "3"}]}, {}],
    )
    assert make_cleaner(s3).remove({"bucket": "lake", "delete_policy": "true"})
    whose = {"Bucket": "lake", "ExpectedBucketOwner": ACCOUNT}
    objects = [{"Key": "a", "VersionId": "1"}, {"Key": "b", "VersionId": "2"}]
    assert s3.calls == [
        ("delete_bucket_policy", whose),
        ("list_object_versions", {**whose, "MaxKeys": 1000}),
        ("delete_objects", {**whose, "Delete": {"Objects": objects, "Quiet": True}}),
        ("list_multipart_uploads", whose),
        ("abort_multipart_upload", {**whose, "Key": "c", "UploadId": "3"}),
        ("list_object_versions", {**whose, "MaxKeys": 1000}),
        ("list_multipart_uploads", whose),
    ]


@pytest.mark.parametrize("properties", [{}, {"delete_policy": "false"}, {"delete_policy": ""}])
def test_a_bucket_s_policy_stays_unless_it_is_to_be_deleted(properties):
    s3 = ScriptedClient()
    assert make_cleaner(s3).remove({"bucket": "lake", **properties})
    assert s3.list_operations() == ["list_object_versions", "list_multipart_uploads"]


@pytest.mark.parametrize(
    "answers",
    [
        {"delete_bucket_policy": ["NoSuchBucket"], "list_object_versions": ["NoSuchBucket"]},
        {"list_object_versions": ["NoSuchBucket"]},
        {"list_multipart_uploads": ["NoSuchBucket"]},
        {
            "list_multipart_uploads": [{"Uploads": [{"Key": "c", "UploadId": "3"}]}, {}],
            "abort_multipart_upload": ["NoSuchUpload"],
        },
    ],
)
def test_what_is_gone_already_counts_as_removed(answers):
    assert make_cleaner(ScriptedClient(**answers)).remove({"bucket": "lake", "delete_policy": "true"})


@pytest.mark.parametrize(
    ("operation", "doing"),
    [
        ("delete_bucket_policy", "deleting the policy of bucket lake"),
        ("list_object_versions", "emptying bucket lake"),
        ("abort_multipart_upload", "ending an upload"),
    ],
)
def test_a_refusal_says_what_was_tried_with_the_bucket(operation, doing):
    s3 = ScriptedClient(
        **{
            "list_multipart_uploads": [{"Uploads": [{"Key": "c", "UploadId": "3"}]}],
            operation: ["AccessDenied"],
        }
    )
    with pytest.raises(LakeferryError) as raised:
        make_cleaner(s3).remove({"bucket": "lake", "delete_policy": "true"})
    assert raised.value.what.startswith(f"{doing}: AccessDenied")


def test_an_object_that_stays_is_an_error_and_its_error_says_so():
    s3 = ScriptedClient(
        list_object_versions=[{"Versions": [{"Key": "a", "VersionId": "1"}]}],
        delete_objects=[{"Errors": [{"Code": "InternalError"}, {"Code": "AccessDenied"}]}],
    )
    with pytest.raises(Transient) as raised:
        make_cleaner(s3).remove({"bucket": "lake"})
    assert raised.value.what == "removing an object of bucket lake: InternalError"


def test_the_work_goes_on_in_the_next_call_when_the_time_is_over():
    """The clock of a bucket that never gets empty: each page takes a minute."""
    clock = ManualClock()

    class Endless(ScriptedClient):
        def list_object_versions(self, **asked):
            clock.sleep(60)
            return {"Versions": [{"Key": "a", "VersionId": "1"}]}

    cleaner = Cleaner(lambda name: Endless(), ACCOUNT, Deadline(clock, clock.time() + 120))
    assert cleaner.remove({"bucket": "lake"}) is False
    assert clock.slept == [60, 60]


def table(name, location="s3://ours/0/data"):
    return {"Name": name, "StorageDescriptor": {"Location": location}}


def test_the_requests_for_a_database():
    aws = ScriptedClient(
        get_tables=[
            {"TableList": [table("a")], "NextToken": "2"},
            {"TableList": [table("b")], "NextToken": "3"},
            {"TableList": []},
            {"TableList": []},
        ],
        get_data_lake_settings=[{"DataLakeSettings": OPEN}],
    )
    assert make_cleaner(aws).remove({"glue_database": "lkc-1", "table_bucket": "ours"})
    assert aws.calls == [
        ("get_tables", {"DatabaseName": "lkc-1"}),
        ("get_tables", {"DatabaseName": "lkc-1", "NextToken": "2"}),
        ("get_tables", {"DatabaseName": "lkc-1", "NextToken": "3"}),
        ("delete_table", {"DatabaseName": "lkc-1", "Name": "a"}),
        ("delete_table", {"DatabaseName": "lkc-1", "Name": "b"}),
        ("get_tables", {"DatabaseName": "lkc-1"}),
        ("get_data_lake_settings", {}),
        ("delete_database", {"Name": "lkc-1"}),
    ]


@pytest.mark.parametrize(("keep", "is_kept"), [("true", True), ("false", False), (None, False)])
def test_a_database_of_somebody_else_s_integration_stays(keep, is_kept):
    aws = ScriptedClient(get_tables=[{"TableList": []}], get_data_lake_settings=[{"DataLakeSettings": OPEN}])
    properties = {"glue_database": "lkc-1", "keep_database": keep}
    assert make_cleaner(aws).remove({name: value for name, value in properties.items() if value})
    assert ("delete_database" in aws.list_operations()) is not is_kept


@pytest.mark.parametrize("operation", ["get_tables", "delete_database"])
def test_a_database_that_is_gone_counts_as_removed(operation):
    gone = {operation: ["EntityNotFoundException"]}
    answers = {"get_tables": [{"TableList": []}], "get_data_lake_settings": [{"DataLakeSettings": OPEN}]}
    assert make_cleaner(ScriptedClient(**{**answers, **gone})).remove({"glue_database": "lkc-1"})


def test_a_table_that_is_gone_stops_nothing():
    aws = ScriptedClient(
        get_tables=[{"TableList": [table("a"), table("b")]}, {"TableList": [table("other", "s3://x/")]}],
        delete_table=["EntityNotFoundException", {}],
    )
    assert make_cleaner(aws).remove({"glue_database": "lkc-1", "table_bucket": "ours"})
    assert aws.list_operations() == ["get_tables", "delete_table", "delete_table", "get_tables"]


@pytest.mark.parametrize(
    ("operation", "doing"),
    [
        ("get_tables", "removing Glue database lkc-1"),
        ("delete_table", "removing Glue table lkc-1.a"),
        ("get_data_lake_settings", "reading the settings of Lake Formation"),
    ],
)
def test_a_failure_says_what_was_tried_with_the_database(operation, doing):
    tables = [table("a")] if operation == "delete_table" else []
    aws = ScriptedClient(**{"get_tables": [{"TableList": tables}], operation: ["InternalServiceException"]})
    with pytest.raises(Transient) as raised:
        make_cleaner(aws).remove({"glue_database": "lkc-1", "table_bucket": "ours"})
    assert raised.value.what == f"{doing}: InternalServiceException"


def test_the_proof_is_asked_for_the_bucket_of_the_tables():
    asked = []
    cleaner = make_cleaner(
        ScriptedClient(get_tables=[{"TableList": [table("a"), table("b")]}, {"TableList": [table("b")]}]),
        find_own_tables=lambda bucket: asked.append(bucket) or frozenset({"a"}),
    )
    properties = {"glue_database": "lkc-1", "table_bucket": "ours", "only_tables": json.dumps(["a", "b"])}
    assert cleaner.remove(properties)
    assert asked == ["ours"]


def test_properties_that_name_nothing_leave_nothing():
    aws = ScriptedClient()
    assert make_cleaner(aws).remove({"bucket": "", "glue_database": ""}) is True
    assert aws.calls == []


def test_the_status_of_the_stack_is_asked_for_by_its_id():
    aws = ScriptedClient(
        describe_stacks=[{"Stacks": [{"StackStatus": "DELETE_IN_PROGRESS"}]}, {"Stacks": []}]
    )
    cleaner = make_cleaner(aws)
    assert cleaner.stack_is_deleting("stack-1") is True
    assert cleaner.stack_is_deleting("stack-1") is False
    assert aws.calls == [("describe_stacks", {"StackName": "stack-1"})] * 2
    with pytest.raises(Transient, match="describing the stack: Throttling"):
        make_cleaner(ScriptedClient(describe_stacks=["Throttling"])).stack_is_deleting("stack-1")


@pytest.mark.parametrize(
    ("described", "is_in"),
    [
        ({"StorageDescriptor": {"Location": "s3://ours/a"}}, True),
        ({"Parameters": {"metadata_location": "s3://ours/a"}}, True),
        (
            {
                "StorageDescriptor": {"Location": "s3://x/"},
                "Parameters": {"metadata_location": "s3://ours/a"},
            },
            True,
        ),
        ({"StorageDescriptor": {"Location": "s3://ours"}}, False),
        ({"StorageDescriptor": {"Location": "s3://ours-2/a"}}, False),
        ({"StorageDescriptor": {"Location": "x/s3://ours/a"}}, False),
        ({"StorageDescriptor": {}, "Parameters": {}}, False),
        ({}, False),
    ],
)
def test_whose_files_a_table_has(described, is_in):
    assert is_table_in(described, "ours") is is_in
    assert is_table_in({"StorageDescriptor": {"Location": "s3:///a"}}, "") is False


@pytest.mark.parametrize(
    ("changed", "lists_all"),
    [
        ({}, True),
        ({"DataLakeAdmins": []}, True),
        ({"DataLakeAdmins": [{"DataLakePrincipalIdentifier": "arn"}]}, False),
        ({"ReadOnlyAdmins": [{"DataLakePrincipalIdentifier": "arn"}]}, False),
        ({"CreateDatabaseDefaultPermissions": []}, False),
        ({"CreateTableDefaultPermissions": []}, False),
        ({"CreateTableDefaultPermissions": None}, False),
    ],
)
def test_glue_lists_all_tables_if_iam_alone_decides(changed, lists_all):
    settings = {"DataLakeSettings": {**OPEN, **changed}}
    assert lists_all_tables(ScriptedClient(get_data_lake_settings=[settings])) is lists_all


def test_settings_that_may_not_be_read_prove_nothing():
    assert lists_all_tables(ScriptedClient(get_data_lake_settings=["AccessDeniedException"])) is False


@pytest.mark.parametrize(
    ("permissions", "gives_all"),
    [
        ([], False),
        (IAM, True),
        ([{}, *IAM], True),
        ([IAM[0] | {"Permissions": ["SELECT"]}], False),
        ([IAM[0] | {"Permissions": ["SELECT", "ALL"]}], True),
        ([IAM[0] | {"Principal": {"DataLakePrincipalIdentifier": "arn"}}], False),
        (
            [
                {"Principal": {"DataLakePrincipalIdentifier": "arn"}, "Permissions": ["ALL"]},
                IAM[0] | {"Permissions": []},
            ],
            False,
        ),
    ],
)
def test_which_default_permissions_leave_tables_to_iam(permissions, gives_all):
    assert gives_all_to_iam(permissions) is gives_all


def test_no_state_has_no_own_tables_and_one_of_another_kind_neither():
    assert list_own_tables([], "ours") == frozenset()
    given = {"kind": "tableflow_topic", "topic": "Orders", "bucket": "ours"}
    own = ResourceState("r", "Create", "", 0.0, "n", given=given, facts=KnownObject(owned=True))
    assert list_own_tables([own], "ours") == {"orders"}
    for changed in ({"kind": "topic"}, {"bucket": "theirs"}):
        other = attrs.evolve(own, given={**given, **changed})
        assert list_own_tables([other], "ours") == frozenset()
    assert list_own_tables([attrs.evolve(own, given={})], "ours") == frozenset()
