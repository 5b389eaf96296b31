"""Probes: which keys AWS refuses in S3, Secrets Manager and CloudWatch Logs, and stock MiniStack accepts."""

import json

from botocore.exceptions import ClientError

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack
from tests.support.aws_clients import PART, error_of, policy
from tests.support.runtime_kit import numbered
from tests.support.waiting import until

USES = ["kms:GenerateDataKey", "kms:Decrypt"]
OBJECTS = (["s3:GetObject", "s3:PutObject", "s3:ListBucket"], "*")
SECRETS = ("secretsmanager:*", "*")


def new_key(aws, *statements, account=True, region=None):
    """Create a key whose policy has these statements, and leaves the rest to IAM if `account`. Return its
    ARN.
    """
    own = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{aws.server.account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    document = policy(*([own] if account else []), *statements)
    return aws.client("kms", region).create_key(Policy=document)["KeyMetadata"]["Arn"]


def encrypted_bucket(aws, key):
    bucket = aws.new_bucket()
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    aws.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    return bucket


def role_with(aws, *statements, via=None, region=None):
    """Return clients of a new role. `via` limits the use of keys to a service, in the server's region or
    another one.
    """
    arn = aws.new_role(*statements)
    if via:
        through = f"{via}.{region or aws.server.region}.amazonaws.com"
        use = {"Effect": "Allow", "Action": USES, "Resource": "*"}
        use["Condition"] = {"StringEquals": {"kms:ViaService": through}}
        aws.iam.put_role_policy(
            RoleName=arn.rpartition("/")[2], PolicyName="keys", PolicyDocument=policy(use)
        )
    return aws.assuming(arn)


def status_of(call, **given):
    try:
        call(**given)
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]
    return None


@probe("s3_kms")
def wants_the_key_for_writing_and_reading(aws):
    key = new_key(aws)
    bucket = encrypted_bucket(aws, key)
    named = {"Bucket": bucket, "Key": "k"}
    without = role_with(aws, OBJECTS).s3
    reader = role_with(aws, OBJECTS, ("kms:Decrypt", key)).s3
    writer = role_with(aws, OBJECTS, ("kms:GenerateDataKey", key)).s3
    answers = [
        error_of(without.put_object, **named, Body=b"1"),
        error_of(reader.put_object, **named, Body=b"1"),
        error_of(writer.put_object, **named, Body=b"1"),
        error_of(without.get_object, **named),
        error_of(writer.get_object, **named),
        error_of(reader.get_object, **named),
        error_of(without.head_object, **named),
    ]
    denied = "AccessDenied"
    return answers == [denied, denied, None, denied, denied, None, None]


@probe("s3_kms")
def tells_the_key_through_which_service_it_is_used(aws):
    key = new_key(aws)
    bucket = encrypted_bucket(aws, key)
    answers = []
    for service in ("secretsmanager", "s3"):
        client = role_with(aws, OBJECTS, via=service).s3
        answers.append(error_of(client.put_object, Bucket=bucket, Key="k", Body=b"1"))
    return answers == ["AccessDenied", None]


@probe("s3_kms")
def asks_the_policy_of_the_key_too(aws):
    """A key whose policy doesn't name the account can't be used with a permission of IAM."""
    key = new_key(aws, account=False)
    bucket = encrypted_bucket(aws, key)
    client = role_with(aws, OBJECTS, (USES, key)).s3
    try:
        client.put_object(Bucket=bucket, Key="k", Body=b"1")
    except ClientError as error:
        return error.response["Error"]["Message"].endswith(
            "because no resource-based policy allows the kms:GenerateDataKey action"
        )
    return False


@probe("s3_kms")
def names_the_state_of_the_key(aws):
    kms = aws.client("kms")
    key = new_key(aws)
    bucket = encrypted_bucket(aws, key)
    named = {"Bucket": bucket, "Key": "k"}
    aws.s3.put_object(**named, Body=b"1")
    kms.disable_key(KeyId=key)
    answers = [status_of(aws.s3.get_object, **named), status_of(aws.s3.put_object, **named, Body=b"2")]
    kms.enable_key(KeyId=key)
    answers.append(status_of(aws.s3.get_object, **named))
    kms.schedule_key_deletion(KeyId=key)
    answers.append(status_of(aws.s3.get_object, **named))
    missing = encrypted_bucket(aws, aws.arn("kms", "key/11111111-1111-4111-8111-111111111111"))
    answers.append(status_of(aws.s3.put_object, Bucket=missing, Key="k", Body=b"1"))
    disabled = (400, "KMS.DisabledException")
    deleted = (400, "KMS.KMSInvalidStateException")
    return answers == [disabled, disabled, None, deleted, (400, "KMS.NotFoundException")]


@probe("s3_kms")
def decrypts_the_parts_of_an_upload(aws):
    key = new_key(aws)
    bucket = encrypted_bucket(aws, key)
    bodies = [b"1" * PART, b"2"]
    may_not = role_with(aws, OBJECTS, ("kms:GenerateDataKey", key))
    may = role_with(aws, OBJECTS, (USES, key))
    if error_of(may_not.upload, bucket, "k", bodies) != "AccessDenied":
        return False
    may.complete(bucket, "k", *may.upload(bucket, "k", bodies))
    return may.s3.get_object(Bucket=bucket, Key="k")["ContentLength"] == PART + 1


@probe("s3_kms")
def decrypts_the_source_of_a_copy(aws):
    key = new_key(aws)
    bucket = encrypted_bucket(aws, key)
    aws.s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    plain = aws.new_bucket()
    source = {"Bucket": plain, "Key": "k", "CopySource": f"{bucket}/k"}
    without = role_with(aws, OBJECTS).s3
    with_it = role_with(aws, OBJECTS, ("kms:Decrypt", key)).s3
    return [error_of(client.copy_object, **source) for client in (without, with_it)] == ["AccessDenied", None]


@probe("secrets_kms")
def wants_the_key_of_a_secret(aws):
    key = new_key(aws)
    name = numbered("secret")
    aws.secrets.create_secret(Name=name, SecretString="1", KmsKeyId=key)
    without = role_with(aws, SECRETS).secrets
    reader = role_with(aws, SECRETS, ("kms:Decrypt", key)).secrets
    writer = role_with(aws, SECRETS, via="secretsmanager").secrets
    answers = [
        error_of(without.get_secret_value, SecretId=name),
        error_of(reader.get_secret_value, SecretId=name),
        error_of(reader.put_secret_value, SecretId=name, SecretString="2"),
        error_of(writer.put_secret_value, SecretId=name, SecretString="2"),
        error_of(without.create_secret, Name=numbered("secret"), KmsKeyId=key),
        error_of(without.describe_secret, SecretId=name),
    ]
    denied = "AccessDeniedException"
    return answers == [denied, None, denied, None, denied, None]


@probe("secrets_kms")
def is_the_service_of_the_region_that_is_called(aws):
    region = "eu-central-1"
    name = numbered("secret")
    key = new_key(aws, region=region)
    aws.client("secretsmanager", region).create_secret(Name=name, SecretString="1", KmsKeyId=key)
    in_region = role_with(aws, SECRETS, via="secretsmanager", region=region)
    in_another = role_with(aws, SECRETS, via="secretsmanager")
    answers = [
        error_of(clients.client("secretsmanager", region).get_secret_value, SecretId=name)
        for clients in (in_region, in_another)
    ]
    return answers == [None, "AccessDeniedException"]


@probe("secrets_kms")
def tells_the_key_which_secret_is_decrypted(aws):
    key = new_key(aws)
    arns = [
        aws.secrets.create_secret(Name=numbered("secret"), SecretString="1", KmsKeyId=key)["ARN"]
        for _ in range(2)
    ]
    role = aws.new_role(SECRETS)
    use = {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": key}
    use["Condition"] = {"StringLike": {"kms:EncryptionContext:SecretARN": arns[0]}}
    aws.iam.put_role_policy(RoleName=role.rpartition("/")[2], PolicyName="k", PolicyDocument=policy(use))
    secrets = aws.assuming(role).secrets
    answers = [error_of(secrets.get_secret_value, SecretId=arn) for arn in arns]
    return answers == [None, "AccessDeniedException"]


@probe("secrets_kms")
def names_a_key_that_can_not_be_used(aws):
    key = new_key(aws)
    name = numbered("secret")
    aws.secrets.create_secret(Name=name, SecretString="1", KmsKeyId=key)
    aws.client("kms").disable_key(KeyId=key)
    reads = error_of(aws.secrets.get_secret_value, SecretId=name)
    writes = error_of(aws.secrets.put_secret_value, SecretId=name, SecretString="2")
    return (reads, writes) == ("DecryptionFailure", "EncryptionFailure")


@probe("secrets_kms")
def refuses_a_secret_of_a_stack_with_a_key_that_is_missing(aws):
    key = aws.arn("kms", "key/11111111-1111-4111-8111-111111111111")
    stack = Stack(aws, "AWS::SecretsManager::Secret", Name=numbered("secret"), KmsKeyId=key)
    return stack.status == "ROLLBACK_COMPLETE"


def lets_logs(aws, group):
    """Return the statement that AWS's guide has for a key of log groups."""
    return {
        "Effect": "Allow",
        "Principal": {"Service": f"logs.{aws.server.region}.amazonaws.com"},
        "Action": ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
        "Resource": "*",
        "Condition": {
            "ArnLike": {"kms:EncryptionContext:aws:logs:arn": aws.arn("logs", f"log-group:{group}")}
        },
    }


@probe("logs_kms")
def wants_a_key_that_lets_logs_use_it(aws):
    logs = aws.client("logs")
    open_key = new_key(aws, lets_logs(aws, "mine-*"))
    answers = [
        error_of(logs.create_log_group, logGroupName=numbered("mine"), kmsKeyId=new_key(aws)),
        error_of(logs.create_log_group, logGroupName=numbered("other"), kmsKeyId=open_key),
        error_of(logs.create_log_group, logGroupName=numbered("mine"), kmsKeyId=open_key),
    ]
    return answers == ["AccessDeniedException", "AccessDeniedException", None]


@probe("logs_kms")
def refuses_the_key_of_a_log_group_of_a_stack(aws):
    refused = Stack(aws, "AWS::Logs::LogGroup", LogGroupName=numbered("mine"), KmsKeyId=new_key(aws))
    open_key = new_key(aws, lets_logs(aws, "mine-*"))
    accepted = Stack(aws, "AWS::Logs::LogGroup", LogGroupName=numbered("mine"), KmsKeyId=open_key)
    updated = accepted.update(LogGroupName=accepted.resource, KmsKeyId=new_key(aws))
    return (refused.status, accepted.status, updated) == (
        "ROLLBACK_COMPLETE",
        "CREATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
    )


@probe("cfn_roles")
def uses_keys_with_the_role_of_the_stack(aws):
    """A role that CloudFormation may assume, and that may not use the key, can't create the secret."""
    key = new_key(aws)
    stacks = aws.client("cloudformation")
    answers = []
    for statements in ((SECRETS,), (SECRETS, (USES, key))):
        name = numbered("role-of-stack")
        properties = {"Name": numbered("secret"), "KmsKeyId": key}
        template = {"Resources": {"It": {"Type": "AWS::SecretsManager::Secret", "Properties": properties}}}
        stacks.create_stack(
            StackName=name, TemplateBody=json.dumps(template), RoleARN=aws.new_role(*statements)
        )
        answers.append(settled_status(stacks, name))
    return answers == ["ROLLBACK_COMPLETE", "CREATE_COMPLETE"]


def settled_status(stacks, name):
    def status():
        return stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]

    until(lambda: not status().endswith("_IN_PROGRESS"), 30.0)
    return status()


@probe("cfn_conditions")
def joins_lists_of_parameters_in_conditions(aws):
    """As CDK's bootstrap does, which otherwise gives its role for CloudFormation no policy."""
    joined = {"Fn::Join": ["", {"Ref": "Policies"}]}
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": numbered("queue")}}
    template = {
        "Parameters": {"Policies": {"Type": "CommaDelimitedList", "Default": ""}},
        "Conditions": {"HasPolicies": {"Fn::Not": [{"Fn::Equals": ["", joined]}]}},
        "Resources": {"Always": queue, "Sometimes": {"Type": "AWS::SNS::Topic", "Condition": "HasPolicies"}},
    }
    stacks = aws.client("cloudformation")
    counts = []
    for policies in ("", "one,two"):
        name = numbered("conditions")
        given = [{"ParameterKey": "Policies", "ParameterValue": policies}]
        queue["Properties"]["QueueName"] = numbered("queue")
        stacks.create_stack(StackName=name, TemplateBody=json.dumps(template), Parameters=given)
        settled_status(stacks, name)
        counts.append(len(stacks.describe_stack_resources(StackName=name)["StackResources"]))
    return counts == [1, 2]
