"""Probes: how AWS differs from stock MiniStack in IAM."""

import json

from simulators.tests.aws.probe_kit import refuses


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
