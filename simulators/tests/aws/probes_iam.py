"""Probes: how AWS differs from stock MiniStack in IAM."""

import json

from simulators.tests.aws.probe_kit import probe, refuses
from simulators.tests.aws.stack_kit import Stack
from tests.support.aws_clients import error_of, policy
from tests.support.runtime_kit import numbered


def put(*names):
    statements = [
        {"Sid": name, "Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"} for name in names
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})

    def call(aws):
        role = aws.new_role(("s3:GetObject", "*")).rpartition("/")[2]
        aws.iam.put_role_policy(RoleName=role, PolicyName="p", PolicyDocument=document)

    return call


refuses(
    "iam_statement_ids", "refuses_two_statements_of_one_sid", "MalformedPolicyDocument", put("Read", "Read")
)


@probe("iam_principal_arn")
def a_session_has_the_arn_of_its_role(aws):
    """As in a bucket policy that lets only one role write."""
    bucket = aws.new_bucket()
    roles = []
    for number in range(2):
        name = f"only-{bucket}-{number}"
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        role = aws.iam.create_role(Path="/data/", RoleName=name, AssumeRolePolicyDocument=policy(trust))
        allow = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}
        aws.iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(allow))
        roles.append(role["Role"]["Arn"])
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{bucket}/*",
    }
    deny["Condition"] = {"ArnNotEquals": {"aws:PrincipalArn": roles[0]}}
    aws.s3.put_bucket_policy(Bucket=bucket, Policy=policy(deny))
    answers = [
        error_of(aws.assuming(role).s3.put_object, Bucket=bucket, Key="k", Body=b"1") for role in roles
    ]
    return answers == [None, "AccessDenied"]


@probe("iam_simulation")
def simulates_a_role_with_a_path(aws):
    name = numbered("simulated")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    made = aws.iam.create_role(Path="/data/", RoleName=name, AssumeRolePolicyDocument=policy(trust))
    allow = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}
    aws.iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(allow))
    results = aws.iam.simulate_principal_policy(
        PolicySourceArn=made["Role"]["Arn"], ActionNames=["s3:PutObject", "s3:GetObject"]
    )["EvaluationResults"]
    return [result["EvalDecision"] for result in results] == ["allowed", "implicitDeny"]


@probe("cfn_attached_policies")
def keeps_a_policy_of_a_stack_that_somebody_attached(aws):
    allow = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [allow]}
    stack = Stack(aws, "AWS::IAM::ManagedPolicy", PolicyDocument=document)
    role = aws.new_role(("s3:GetObject", "*")).rpartition("/")[2]
    aws.iam.attach_role_policy(RoleName=role, PolicyArn=stack.resource)
    refused = stack.delete()
    aws.iam.detach_role_policy(RoleName=role, PolicyArn=stack.resource)
    return (refused, stack.delete()) == ("DELETE_FAILED", "DELETE_COMPLETE")
