"""The clean-up deletes left-over data with its stack, and never otherwise."""

from __future__ import annotations

import itertools
import json

import attrs
import boto3
import pytest
import requests
from botocore.exceptions import ClientError, EndpointConnectionError

from lambdas import contract
from lambdas.custom_resources.cleanup import Cleaner, list_own_tables
from lambdas.custom_resources.state import KnownObject, ResourceState
from lambdas.handlers import cleanup, custom_resource
from lambdas.handlers.runtime import Failed
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import Denied, Refused, Transient
from tests.support.resource_environment import ACCOUNT, REGION, ManualClock

_numbers = itertools.count(1)
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/lakeferry-dev-data/1"


@pytest.fixture
def leftovers(lake_aws):
    clock = ManualClock()
    return Cleaner(boto3.client, "000000000000", Deadline(clock, clock.time() + 90))


@pytest.fixture
def name():
    return f"cleanup-{next(_numbers)}"


def test_a_bucket_with_versions_markers_and_uploads_is_emptied(leftovers, name, lake_aws):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": lake_aws.region})
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    for number in range(3):
        s3.put_object(Bucket=name, Key="again", Body=str(number))
        s3.put_object(Bucket=name, Key=f"deep/{number}", Body=b"")
    s3.delete_object(Bucket=name, Key="again")
    s3.create_multipart_upload(Bucket=name, Key="begun")
    assert leftovers.remove({"bucket": name})
    found = s3.list_object_versions(Bucket=name)
    assert not [*found.get("Versions", []), *found.get("DeleteMarkers", [])]
    assert not s3.list_multipart_uploads(Bucket=name).get("Uploads")
    assert leftovers.remove({"bucket": name})
    s3.delete_bucket(Bucket=name)
    assert leftovers.remove({"bucket": name}), "gone is gone"


@pytest.mark.slow
def test_a_bucket_with_more_objects_than_s3_lists_at_once_is_emptied(leftovers, name, lake_aws):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": lake_aws.region})
    for number in range(1001):
        s3.put_object(Bucket=name, Key=f"{number}", Body=b"")
    assert leftovers.remove({"bucket": name})
    assert s3.list_objects_v2(Bucket=name)["KeyCount"] == 0


OURS = "s3://ours/0/data"
THEIRS = "s3://theirs/0/data"


def tables_of(database):
    return sorted(
        table["Name"] for table in boto3.client("glue").get_tables(DatabaseName=database)["TableList"]
    )


def make_database(name, **locations):
    glue = boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": name})
    for table, location in locations.items():
        stored = {"StorageDescriptor": {"Location": location}} if location else {}
        glue.create_table(DatabaseName=name, TableInput={"Name": table, **stored})


def test_a_database_is_deleted_with_its_tables_and_no_other(leftovers, name):
    glue = boto3.client("glue")
    for database in (name, f"{name}-other"):
        make_database(database, stock_trades=OURS, orders=OURS)
    given = {"glue_database": name, "table_bucket": "ours"}
    assert leftovers.remove(given)
    with pytest.raises(glue.exceptions.EntityNotFoundException):
        glue.get_database(Name=name)
    assert len(tables_of(f"{name}-other")) == 2
    assert leftovers.remove(given)


@pytest.mark.parametrize(
    ("bucket", "kept"),
    [("ours", ["theirs", "view"]), ("our", ["a", "b", "theirs", "view"]), ("", ["a", "b", "theirs", "view"])],
)
def test_tables_with_files_elsewhere_stay_with_their_database(leftovers, name, bucket, kept):
    """A name that begins alike is another bucket.

    Without a bucket, as an earlier release named none, no table is ours.
    """
    make_database(name, a=OURS, b=OURS, theirs=THEIRS, view=None)
    assert leftovers.remove({"glue_database": name, "table_bucket": bucket})
    assert tables_of(name) == kept


@pytest.mark.parametrize(
    ("only_tables", "kept"),
    [('["b"]', ["a", "c"]), ("[]", ["a", "b", "c"]), ('["c"]', ["a", "b", "c"]), ('["b", "c"]', ["a", "c"])],
)
def test_no_other_table_goes_from_a_bucket_of_others(leftovers, name, only_tables, kept):
    """An empty list is no missing list. Somebody else enabled Tableflow for c, before this deployment tried
    to.
    """
    make_database(name, a=OURS, b=OURS, c=OURS)
    properties = {"glue_database": name, "table_bucket": "ours", "only_tables": only_tables}
    cleaner = attrs.evolve(leftovers, find_own_tables=lambda bucket: frozenset({"a", "b"}))
    assert cleaner.remove(properties)
    assert tables_of(name) == kept


def test_without_proof_no_table_goes_from_a_bucket_of_others(leftovers, name):
    make_database(name, a=OURS)
    assert leftovers.remove({"glue_database": name, "table_bucket": "ours", "only_tables": '["a"]'})
    assert tables_of(name) == ["a"]


OF_TABLE = {"kind": "tableflow_topic", "topic": "elsewhere", "bucket": "ours"}


def tableflow_state(topic, **facts):
    given = {**OF_TABLE, "topic": topic}
    return ResourceState("request", "Delete", "", 0.0, topic, given=given, facts=KnownObject(**facts))


def test_tables_are_own_if_a_resource_enabled_tableflow_for_their_topics():
    states = [
        tableflow_state("Enabled", owned=True),
        tableflow_state("Deleted", removed_own=True),
        tableflow_state("refused"),
        attrs.evolve(tableflow_state("elsewhere", owned=True), given={**OF_TABLE, "bucket": "another"}),
        ResourceState("request", "Create", "", 0.0, "a topic", given={"kind": "topic", "topic": "orders"}),
    ]
    assert list_own_tables(states, "ours") == {"enabled", "deleted"}


def test_a_policy_that_forbids_deleting_goes_first(leftovers, name, lake_aws):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": lake_aws.region})
    s3.put_object(Bucket=name, Key="it", Body=b"")
    denial = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:DeleteObject*",
        "Resource": f"arn:aws:s3:::{name}/*",
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [denial]})
    s3.put_bucket_policy(Bucket=name, Policy=policy)
    assert leftovers.remove({"bucket": name, "delete_policy": "true"})
    assert s3.list_objects_v2(Bucket=name)["KeyCount"] == 0
    with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
        s3.get_bucket_policy(Bucket=name)
    s3.delete_bucket(Bucket=name)
    assert leftovers.remove({"bucket": name, "delete_policy": "true"}), "gone is gone"


def test_an_empty_database_is_deleted(leftovers, name):
    make_database(name)
    assert leftovers.remove({"glue_database": name})
    assert name not in [database["Name"] for database in boto3.client("glue").get_databases()["DatabaseList"]]


@pytest.fixture
def govern(lake_aws):
    """Return a function that sets up Lake Formation until the end of the test."""

    def set_up(**given):
        requests.post(f"{lake_aws.url}/_simulator/lake-formation", json=given, timeout=20).raise_for_status()

    yield set_up
    set_up()


@pytest.mark.parametrize(
    "settings", [{"governs": True}, {"administrators": ["arn:aws:iam::000000000000:role/lake-admin"]}]
)
def test_a_database_in_which_lake_formation_may_hide_tables_stays(leftovers, name, govern, settings):
    """Glue's list is empty if the function has no permission on any of the tables, and deleting the database
    deletes them.
    """
    make_database(name, a=OURS)
    govern(**settings)
    assert leftovers.remove({"glue_database": name, "table_bucket": "ours"})
    assert tables_of(name) == []


class GovernedByNobodyKnows:
    """Glue with an empty database, and settings of Lake Formation that the function may not read."""

    def __init__(self):
        self.calls = []

    def get_tables(self, **asked):
        return {"TableList": []}

    def delete_database(self, **asked):
        self.calls.append(asked)

    def get_data_lake_settings(self):
        raise ClientError(
            {"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetDataLakeSettings"
        )


def test_a_database_stays_if_it_is_not_known_whether_lake_formation_hides_tables():
    clock = ManualClock()
    aws = GovernedByNobodyKnows()
    assert Cleaner(lambda service: aws, ACCOUNT, Deadline(clock, clock.time() + 90)).remove(
        {"glue_database": "lkc-1"}
    )
    assert aws.calls == []


def test_without_time_nothing_is_started_and_success_is_not_reported(name):
    clock = ManualClock()
    late = Cleaner(boto3.client, "000000000000", Deadline(clock, clock.time()))
    assert late.remove({"bucket": name}) is False
    assert late.remove({"glue_database": name}) is False


class Refusing:
    """An AWS client whose every call raises an error."""

    def __init__(self, code):
        self.code = code

    def __getattr__(self, operation):
        def refuse(**asked):
            if self.code is None:
                raise EndpointConnectionError(endpoint_url="https://aws")
            raise ClientError({"Error": {"Code": self.code, "Message": "secret words"}}, operation)

        return refuse


@pytest.mark.parametrize("what", contract.CLEANUPS)
@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("SlowDown", Transient),
        ("TooManyRequestsException", Transient),
        (None, Transient),
        ("AccessDenied", Denied),
        ("InvalidInputException", Refused),
    ],
)
def test_temporary_errors_are_retried_and_a_refusal_is_reported(what, code, raised):
    clock = ManualClock()
    refused = Cleaner(lambda service: Refusing(code), ACCOUNT, Deadline(clock, clock.time() + 90))
    with pytest.raises(raised) as raised:
        refused.remove({what: "x"})
    says_why = code == "AccessDenied"  # only a denial's message is known to have no data
    assert ("secret words" in str(raised.value)) == says_why


class KeepsOneObject:
    """S3 that can't remove one object now. The call succeeds, and lists the object among its errors."""

    def __init__(self, code):
        self.code = code

    def list_object_versions(self, **asked):
        return {"Versions": [{"Key": "one", "VersionId": "1"}]}

    def delete_objects(self, **asked):
        return {"Errors": [{"Key": "one", "VersionId": "1", "Code": self.code, "Message": "secret words"}]}


@pytest.mark.parametrize(("code", "raised"), [("InternalError", Transient), ("AccessDenied", Denied)])
def test_an_object_that_s3_can_not_remove_now_is_tried_again(code, raised):
    clock = ManualClock()
    leftovers = Cleaner(lambda service: KeepsOneObject(code), ACCOUNT, Deadline(clock, clock.time() + 90))
    with pytest.raises(raised, match=code):
        leftovers.remove({"bucket": "x"})


class Stacks:
    def __init__(self, status):
        self.status = status

    def describe_stacks(self, **asked):
        return {"Stacks": [{"StackId": asked["StackName"], "StackStatus": self.status}]}


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])
def test_leftovers_are_deleted_with_their_stack(status):
    assert Cleaner(lambda service: Stacks(status), ACCOUNT, None).stack_is_deleting(STACK)


@pytest.mark.parametrize(
    "status",
    [
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "CREATE_COMPLETE",
    ],
)
def test_a_resource_that_only_leaves_the_template_cleans_up_nothing(status):
    """I20: changing to `keep` removes the resource from a stack that continues to exist."""
    assert not Cleaner(lambda service: Stacks(status), ACCOUNT, None).stack_is_deleting(STACK)


class Context:
    invoked_function_arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:cleanup"

    def get_remaining_time_in_millis(self):
        return 120_000


def event(verb, **properties):
    return {
        "RequestType": verb,
        "StackId": STACK,
        "LogicalResourceId": "Empty",
        "PhysicalResourceId": "cleanup:bucket:old",
        "RequestId": "1",
        "ResourceProperties": properties,
    }


def test_only_delete_has_an_effect():
    for verb in ("Create", "Update"):
        assert cleanup.is_complete(event(verb, bucket="x"), Context()) == {"IsComplete": True}


def test_another_bucket_is_another_resource():
    """CloudFormation deletes the old id after an update, which must not be the bucket in use."""
    one, other = (
        cleanup.on_event(event("Update", bucket=name), Context())["PhysicalResourceId"]
        for name in ("one", "other")
    )
    assert one != other
    assert (
        cleanup.on_event(event("Delete", bucket="x"), Context())["PhysicalResourceId"] == "cleanup:bucket:old"
    )


@pytest.mark.parametrize("handler", [cleanup.handle, custom_resource.handle])
def test_the_first_call_returns_the_id_and_the_next_ones_clean_up(handler):
    """This also holds for a function that serves a vendor's resources too."""
    asked = {**event("Create", bucket="x"), "ResourceType": contract.CLEANUP_TYPE}
    named = handler(asked, Context())
    assert named["PhysicalResourceId"] == "cleanup:bucket:x"
    assert handler({**asked, **named}, Context()) == {"IsComplete": True}


def test_a_stack_of_another_account_cleans_up_nothing():
    """I17."""
    foreign = {**event("Delete", bucket="x"), "StackId": STACK.replace(ACCOUNT, "999999999999")}
    with pytest.raises(Failed, match="LF-FOREIGN-EVENT"):
        cleanup.is_complete(foreign, Context())


def test_a_failure_is_one_short_message(lake_aws):
    """The stack doesn't exist, so its state can't be read."""
    with pytest.raises(Failed) as raised:
        cleanup.is_complete(event("Delete", bucket="x"), Context())
    assert len(str(raised.value)) < 2_000
    assert raised.value.__suppress_context__
