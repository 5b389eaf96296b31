"""AWS says in its message what denied a call.

That survives in functions, commands, doctor and job, with advice about it.
"""

from __future__ import annotations

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from config.aws_denials import DENIALS, find_denial, shorten
from glue_jobs import errors as job_errors
from glue_jobs import store
from lakeferry import error_translation, errors
from lakeferry.deploy import failure_causes
from lakeferry.deployment.stacks import Event
from lakeferry.errors import CommandFailed
from lakeferry.health import runner
from lakeferry.health.model import Group
from lambdas.custom_resources.cleanup import Cleaner
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import Denied, LakeferryError
from lambdas.shared.redaction import Secret
from lambdas.snowflake import errors as snowflake_errors
from tests.support.scripted_server import Scripted

WHO = f"User: arn:aws:sts::111122223333:assumed-role/{'x' * 64}/{'y' * 64} is not authorized to perform: "
GLUE = f"{WHO}glue:GetTables on resource: arn:aws:glue:eu-west-1:111122223333:database/lkc-abc123 "
#: Messages of AWS, and what they name. The first forms are those of IAM's user guide, the others are from
#: public reports.
SAID = {
    f"{GLUE}with an explicit deny in a service control policy": "a service control policy",
    f"{GLUE}with an explicit deny in a service control policy: "
    "arn:aws:organizations::1:policy/o-1/service_control_policy/p-1":
        "a service control policy",
    f"{GLUE}because no service control policy allows the glue:GetTables action": "a service control policy",
    f"{WHO}kms:Decrypt on resource: arn:aws:kms:eu-west-1:1:key/k with an explicit deny in a service "
    "control policy":
        "a service control policy",
    f"{WHO}sts:AssumeRole on resource: arn:aws:iam::1:role/r with an explicit deny in a resource control "
    "policy":
        "a resource control policy",
    f"{GLUE}because no permissions boundary allows the glue:GetTables action": "a permissions boundary",
    f"{GLUE}with an explicit deny in a permissions boundary: arn:aws:iam::1:policy/edge": "a permissions boundary",
    f"{GLUE}because no session policy allows the glue:GetTables action": "a session policy",
    f"{GLUE}because no VPC endpoint policy allows the glue:GetTables action": "the policy of a VPC endpoint",
    "Insufficient Lake Formation permission(s): Required Describe on lkc-abc123": "Lake Formation",
    "Insufficient Lake Formation permission(s) on lkc-abc123 (Database name: lkc-abc123)": "Lake Formation",
    f"{WHO}lakeformation:GetDataAccess on resource: arn:aws:lakeformation:eu-west-1:1:catalog:1 because no "
    "identity-based policy":
        "Lake Formation",
    f"{WHO}kms:Decrypt on resource: arn:aws:kms:eu-west-1:1:key/k because no resource-based policy allows "
    "the kms:Decrypt action":
        "the policy of a KMS key",
    "Access to KMS is not allowed": "the policy of a KMS key",
    "The ciphertext refers to a customer master key that does not exist, or you are not allowed to access it":
        "the policy of a KMS key",
    f"{GLUE}with an explicit deny in a resource-based policy": "the resource's own policy",
    f"{WHO}sts:AssumeRole on resource: arn:aws:iam::1:role/r because no role trust policy allows the "
    "sts:AssumeRole action":
        "the role's trust policy",
}  # fmt: skip
#: Messages that name nothing but the role's own policies, or a resource whose name contains such words.
UNNAMED = (
    f"{GLUE}because no identity-based policy allows the glue:GetTables action",
    f"{WHO}s3:GetObject on resource: arn:aws:s3:::acme-lakeformation-kms-service-control-policies/data",
    "Access Denied",
    "",
)


@pytest.fixture(params=[*SAID, *UNNAMED])
def said(request):
    return request.param


@pytest.fixture
def glue(said):
    config = Config(retries={"total_max_attempts": 1})
    answer = (400, {"__type": "AccessDeniedException", "Message": said})
    with Scripted({"POST /": answer}) as server:
        yield boto3.client(
            "glue",
            region_name="eu-west-1",
            endpoint_url=server.url,
            aws_access_key_id="key",
            aws_secret_access_key="none",
            config=config,
        )


def expect(said, message, advice):
    """The end of AWS's message says what denied the call; the advice is about that."""
    assert said[-60:].strip() in message
    denial = find_denial(said)
    assert (denial.by if denial else None) == SAID.get(said)
    if denial:
        assert denial.remedy in advice
    else:
        assert not [candidate for candidate in DENIALS if candidate.remedy in advice]


def test_a_function_says_what_denied_a_call(glue, said):
    clock = SystemClock()
    with pytest.raises(Denied) as failed:
        Cleaner(lambda service: glue, "111122223333", Deadline(clock, clock.time() + 60)).glue_database(
            "lkc-abc123", "tables"
        )
    expect(said, failed.value.what, str(failed.value))
    reported = errors.read(str(failed.value))
    assert reported.entry.code == "AWS-REFUSED"
    expect(said, reported.what, reported.remedy)
    failure = error_translation.as_failure(failed.value)
    assert failure.message.startswith("removing Glue database lkc-abc123: AccessDeniedException")
    assert failure.message.count("AccessDeniedException") == 1
    expect(said, failure.message, failure.hint)


def test_a_command_says_what_denied_a_call(glue, said):
    with pytest.raises(CommandFailed) as failed, error_translation.translate_aws_errors("reading the table"):
        glue.get_tables(DatabaseName="lkc-abc123")
    expect(said, failed.value.message, failed.value.hint)


def test_doctor_warns_of_what_it_may_not_read_and_says_what_denied_it(glue, said):
    check = runner.attempt(Group("storage"), "tables", lambda: glue.get_tables(DatabaseName="lkc-abc123"))
    assert check.result == "warn"
    expect(said, check.message, check.fix)


def test_the_job_says_what_denied_a_call(glue, said):
    with pytest.raises(job_errors.StorageProblem) as failed, store.translate_aws_errors("reading the table"):
        glue.get_tables(DatabaseName="lkc-abc123")
    assert failed.value.code == "EXP-AWS-DENIED"
    expect(said, failed.value.what, failed.value.remedy)


def test_the_job_names_what_denied_a_task_without_the_text_of_spark(said):
    java = (
        f"software.amazon.awssdk.services.glue.model.AccessDeniedException: {said} (Service: Glue, Status "
        "Code: 400)"
    )
    failed = job_errors.translate(RuntimeError(java))
    assert failed.code == "EXP-AWS-DENIED"
    assert "111122223333" not in failed.what
    named = SAID.get(said)
    assert (named in failed.what) if named else ("denied by" not in failed.what)


def test_what_a_vendor_passes_on_gets_the_same_advice(said):
    failed = LakeferryError(snowflake_errors.TRUST_ROLE, f"Snowflake says: Error assuming AWS_ROLE: {said}")
    denial = find_denial(said)
    assert failed.remedy == (denial.remedy if denial else snowflake_errors.TRUST_ROLE.remedy)


def test_what_cloudformation_passes_on_gets_the_same_advice(said):
    reason = f"Resource handler returned message: {said} (Service: Iam; HandlerErrorCode: AccessDenied)"
    event = Event("1", "s", "id", "Role", "", "AWS::IAM::Role", "CREATE_FAILED", reason, 1.0)
    cause = failure_causes.find([event])
    expect(said, cause.what, cause.fix)


def test_lake_formation_is_named_by_java_in_the_job():
    java = (
        "software.amazon.awssdk.services.lakeformation.model.AccessDeniedException: Access is not allowed. "
    )
    failed = job_errors.translate(
        RuntimeError(f"{java}(Service: LakeFormation, Status Code: 400, Request ID: x)")
    )
    assert "Lake Formation" in failed.what


def test_an_answer_has_no_secret():
    secret = Secret("a-very-secret-value")
    error = ClientError({"Error": {"Code": "AccessDenied", "Message": f"no {secret.reveal()}"}}, "GetTable")
    with pytest.raises(CommandFailed) as failed, error_translation.translate_aws_errors("reading"):
        raise error
    assert secret.reveal() not in failed.value.message


@pytest.mark.parametrize(
    "code", ["ValidationException", "InvalidParameterException", "ConditionalCheckFailedException"]
)
def test_messages_of_other_errors_may_contain_data_and_are_left_out(code):
    error = ClientError(
        {"Error": {"Code": code, "Message": "value 'a row of a person' is not valid"}}, "PutItem"
    )
    with pytest.raises(CommandFailed) as failed, error_translation.translate_aws_errors("writing"):
        raise error
    assert failed.value.message == f"writing: {code}"


def test_a_long_text_keeps_its_end():
    assert shorten("a" * 1000 + "because", 100).endswith("because")
    assert len(shorten("a" * 1000, 100)) == 100
    assert shorten("short", 100) == "short"
