"""The parts of a request, what is asked of CloudFormation and Glue, and how wrong events are reported."""

from __future__ import annotations

import hashlib
import io
import json

import pytest
from botocore.exceptions import ClientError

from lambdas.custom_resources import registry, request
from lambdas.custom_resources.aggregate_table import AggregateTable
from lambdas.custom_resources.request import CloudFormationStacks, Identity, Request
from lambdas.shared import errors
from lambdas.shared.errors import (
    BadProperties,
    Denied,
    InProgress,
    LakeferryError,
    Refused,
    ResourceFailed,
    Transient,
)
from tests.support.resource_environment import START, ManualClock
from tests.support.toy_kind import Spec, ToyKind, Toys

STACK = "arn:aws:cloudformation:eu-west-1:111122223333:stack/lake/11111111-2222-3333-4444-555555555555"
EVENT = {
    "RequestType": "Update",
    "RequestId": 7,
    "StackId": STACK,
    "LogicalResourceId": "Toy",
    "PhysicalResourceId": "lf1:toy:Toy:0",
    "ResourceProperties": {"kind": "toy", "size": "2"},
    "OldResourceProperties": {"size": "1"},
    "StartedAt": 1.5,
    "Discard": "lf1:toy:Toy:1",
}


def test_an_event_is_read_in_full():
    assert request.read_request(EVENT) == Request(
        id="7",
        verb="Update",
        stack_id=STACK,
        logical_id="Toy",
        kind="toy",
        physical_id="lf1:toy:Toy:0",
        given={"kind": "toy", "size": "2"},
        before={"size": "1"},
        started=1.5,
        discard="lf1:toy:Toy:1",
    )


@pytest.mark.parametrize("empty", [None, "", "missing"])
def test_an_event_has_defaults_for_what_cloudformation_may_leave_out(empty):
    optional = ("PhysicalResourceId", "OldResourceProperties", "StartedAt", "Discard")
    event = {name: value for name, value in EVENT.items() if name not in optional}
    if empty != "missing":
        event |= dict.fromkeys(optional, empty)
    event["ResourceProperties"] = {}
    assert request.read_request(event) == Request("7", "Update", STACK, "Toy", "", "", {}, {}, 0.0, "")


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"RequestType": "Read"}, "an event of type Read"),
        ({"StartedAt": "soon"}, "an event without could not convert string to float: 'soon'"),
        ({"ResourceProperties": 7}, "an event without 'int' object is not iterable"),
    ],
)
def test_an_event_of_another_form_is_named(changed, what):
    with pytest.raises(LakeferryError) as raised:
        request.read_request({**EVENT, **changed})
    assert (raised.value.kind, raised.value.what) == (errors.FOREIGN, what)
    missing = {name: value for name, value in EVENT.items() if name != "RequestId"}
    with pytest.raises(LakeferryError) as raised:
        request.read_request(missing)
    assert raised.value.what == "an event without 'RequestId'"


def test_the_first_call_has_no_time():
    assert not request.is_first_call(EVENT)
    assert request.is_first_call({name: value for name, value in EVENT.items() if name != "StartedAt"})


def test_keys_and_hashes_of_living_resources_never_change():
    identity = Identity("toy", "Toy", "0")
    assert request.build_state_key(STACK, identity) == f"{STACK}|lf1:toy:Toy:0"
    assert (
        request.compute_resource_uid(STACK, "Toy") == hashlib.sha256(f"{STACK}/Toy".encode()).hexdigest()[:32]
    )
    read = request.read_request(EVENT)
    given = hashlib.sha256(b'{"kind": "toy", "size": "2"}').hexdigest()[:16]
    assert (read.fingerprint, read.fingerprint_before) == (
        given,
        hashlib.sha256(b'{"size": "1"}').hexdigest()[:16],
    )
    shelf = hashlib.sha256(b'["north"]').hexdigest()[:8]
    assert request.compute_generation(ToyKind(), Spec(shelf="north")) == shelf


@pytest.mark.parametrize(
    ("stack", "parts"),
    [
        (STACK, ("111122223333", "eu-west-1", "lake")),
        ("arn:aws-cn:cloudformation:r:1:stack/a", ("1", "r", "a")),
        ("arn:aws:cloudformation:r:1:stack/a/b:c", ("1", "r", "a")),
        ("arn:aws:s3:r:1:stack/a", None),
        ("arn:aws:cloudformation:r:1", None),
        ("arn:aws:cloudformation:r:1:stacks/a", None),
    ],
)
def test_the_parts_of_a_stack_s_arn(stack, parts):
    if parts:
        assert request.parse_stack_arn(stack) == parts
        return
    with pytest.raises(LakeferryError) as raised:
        request.parse_stack_arn(stack)
    assert (raised.value.kind, raised.value.what) == (errors.FOREIGN, f"'{stack}' is not the ARN of a stack")


def test_an_unknown_type_is_reported_with_the_known_ones():
    with pytest.raises(BadProperties) as raised:
        registry.find("chair", {"a": 1, "b": 2})
    assert raised.value.problems == (("kind", "'chair' is none of a, b"),)
    assert registry.find("topic").vendor == "confluent"


@pytest.mark.parametrize(
    ("verb", "doing"), [("Create", "creating"), ("Update", "updating"), ("Delete", "deleting")]
)
def test_an_error_names_the_operation(verb, doing):
    toys = Toys()
    event = toys.resource().event(verb, PhysicalResourceId=f"lf1:toy:Toy:{'0' * 8}")
    toys.invocations.documents.read = lambda key: refuse()

    def refuse():
        raise Refused(errors.AWS_REFUSED, "no")

    with pytest.raises(Refused) as raised:
        toys.invocations.is_complete({**event, "StartedAt": START})
    assert raised.value.doing == f"{doing} toy Toy: "


@pytest.mark.parametrize("verb", ["Create", "Update"])
def test_an_id_of_something_else_is_named(verb):
    toys = Toys()
    event = toys.resource().event(verb, PhysicalResourceId="lf1:toy:Other:0")
    with pytest.raises(LakeferryError) as raised:
        toys.invocations.is_complete({**event, "StartedAt": START})
    assert raised.value.kind is errors.FOREIGN
    assert raised.value.what == "'lf1:toy:Other:0' is not the id that was given to Toy"


def test_a_lease_that_can_not_be_returned_is_logged_and_the_work_is_done():
    toys = Toys()
    toys.invocations.log = io.StringIO()
    event = toys.resource().event("Create")
    known = {**event, **toys.invocations.on_event(event)}
    write = toys.invocations.documents.write

    def fail_at_the_end(key, document, over, expires):
        if document["lease_owner"] == "" and document["progress"]["done"]:
            raise Transient(errors.AWS_REFUSED, "throttled")
        return write(key, document, over, expires)

    toys.invocations.documents.write = fail_at_the_end
    assert toys.invocations.is_complete(known)["Data"] == {"id": "thing-1", "size": "1"}
    assert json.loads(toys.invocations.log.getvalue().splitlines()[-1]) == {
        "level": "ERROR",
        "message": "lease not released",
        "code": "AWS-REFUSED",
        "reason": "throttled",
    }


# --- stacks


class CloudFormation:
    def __init__(self, code=None):
        self.code = code
        self.calls = []

    def __getattr__(self, operation):
        def answer(**asked):
            self.calls.append((operation, asked))
            if self.code:
                raise ClientError({"Error": {"Code": self.code, "Message": "words"}}, operation)
            return {"Stacks": [{"StackStatus": "CREATE_IN_PROGRESS"}, {"StackStatus": "X"}]}

        return answer


def test_the_requests_about_a_stack():
    client = CloudFormation()
    stacks = CloudFormationStacks(client)
    assert stacks.is_forward("s") is True
    assert stacks.is_rolling_back("s") is False
    assert stacks.is_creating("s", "Toy") is False, "the answer has no status"
    of_stack = ("describe_stacks", {"StackName": "s"})
    of_resource = ("describe_stack_resource", {"StackName": "s", "LogicalResourceId": "Toy"})
    assert client.calls == [of_stack, of_stack, of_resource]


@pytest.mark.parametrize(
    ("ask", "doing"),
    [
        (lambda stacks: stacks.is_forward("s"), "describing the stack"),
        (lambda stacks: stacks.is_rolling_back("s"), "describing the stack"),
        (lambda stacks: stacks.is_creating("s", "Toy"), "describing a resource of the stack"),
    ],
)
def test_an_error_about_a_stack_says_what_was_asked(ask, doing):
    with pytest.raises(Transient) as raised:
        ask(CloudFormationStacks(CloudFormation("Throttling")))
    assert raised.value.what == f"{doing}: Throttling"


# --- the table of an export's aggregates


class Glue:
    """Glue with these runs of the job; `code` is that of the error of each start."""

    def __init__(self, *states, code=None, listing=None, **more):
        arguments = {"--request": "r1"}
        self.listed = [
            {"Id": f"jr_{number}", "JobRunState": state, "Arguments": arguments, **more}
            for number, state in enumerate(states)
        ]
        others = [{"Id": "jr_other", "JobRunState": "SUCCEEDED", "Arguments": {"--request": "r2"}}]
        others.append({"Id": "jr_schedule", "JobRunState": "SUCCEEDED"})
        self.listed += others
        self.code = code
        self.listing = listing
        self.calls = []

    def get_job_runs(self, **asked):
        self.calls.append(asked)
        self._perhaps_refuse(self.listing)
        return {"JobRuns": self.listed}

    def start_job_run(self, **asked):
        self.calls.append(asked)
        self._perhaps_refuse(self.code)

    def _perhaps_refuse(self, code):
        if code:
            raise ClientError({"Error": {"Code": code, "Message": "words"}}, "operation")


def table_of(glue):
    return AggregateTable(glue, ManualClock(), {"job": "the-job", "export": "sales"}, "r1")


def test_the_requests_for_the_first_run():
    glue = Glue()
    assert table_of(glue).is_created() is False
    assert glue.calls == [
        {"JobName": "the-job", "MaxResults": 100},
        {
            "JobName": "the-job",
            "Arguments": {
                "--export": "sales",
                "--as-of": "2026-09-21T14:13:20+00:00",
                "--request": "r1",
            },
        },
    ]


@pytest.mark.parametrize(
    ("states", "is_created"),
    [
        (["SUCCEEDED"], True),
        (["FAILED", "SUCCEEDED"], True),
        (["RUNNING", "SUCCEEDED"], True),
        (["RUNNING"], False),
        (["STARTING", "FAILED"], False),
        (["WAITING"], False),
        (["STOPPING"], False),
    ],
)
def test_a_table_is_created_once_a_run_has_succeeded(states, is_created):
    glue = Glue(*states)
    assert table_of(glue).is_created() is is_created
    assert len(glue.calls) == 1


@pytest.mark.parametrize("state", ["ERROR", "EXPIRED", "FAILED", "STOPPED", "TIMEOUT"])
@pytest.mark.parametrize(
    ("message", "reason"),
    [("it broke", "it broke"), ("", "Glue gives no reason"), (None, "Glue gives no reason")],
)
def test_a_table_of_which_all_runs_failed_is_reported_with_the_first_one_s_reason(state, message, reason):
    with pytest.raises(ResourceFailed) as raised:
        table_of(Glue(state, "FAILED", ErrorMessage=message)).is_created()
    assert raised.value.kind is errors.AGGREGATE_TABLE
    assert raised.value.what == f"run jr_0 of job the-job is {state}: {reason}"


@pytest.mark.parametrize(
    ("glue", "kind", "what"),
    [
        (
            Glue(code="ConcurrentRunsExceededException"),
            InProgress,
            "job the-job: ConcurrentRunsExceededException",
        ),
        (Glue(code="InternalServiceException"), Transient, "starting job the-job: InternalServiceException"),
        (Glue(code="AccessDeniedException"), Denied, "starting job the-job: AccessDeniedException"),
        (Glue(listing="AccessDeniedException"), Denied, "listing the runs of job the-job: AccessDenied"),
    ],
)
def test_what_glue_refuses_is_named(glue, kind, what):
    with pytest.raises(LakeferryError) as raised:
        table_of(glue).is_created()
    assert type(raised.value) is kind
    assert raised.value.what.startswith(what)
