"""An account whose security department gives a team a network, KMS keys and a permissions boundary, and whose
catalog Lake Formation governs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from lakeferry.local.bootstrap import ROOT
from simulators.core import control
from tests.support.aws_clients import policy
from tests.support.network import Network

#: Keys of other teams, some of which look like those of exports and of Tableflow.
OTHERS: Final = (
    "exports/daily_trades/data/2026-01-01.csv.gz",
    "warehouse/orders/metadata/v1.json",
    "101010/111011/9f0c/env-other/lkc-other/v1/9f0c/metadata/00001.metadata.json",
    "regulated-shared-theirs/notes.txt",
)
QUALIFIER: Final = "security"
#: Services that roles of the deployment may use. Nothing else is inside the boundary.
_SERVICES: Final = (
    "athena cloudformation cloudwatch dynamodb ec2 events glue kms lakeformation lambda logs s3 scheduler "
    "secretsmanager sns sqs states sts tag"
).split()


class RegulatedAccount:
    """What exists before the first deployment."""

    def __init__(self, aws: Any, variables: dict[str, str]) -> None:
        self.aws = aws
        self.region = aws.region
        self.account = aws.account
        self.network = Network(boto3.client("ec2"))
        self.keys = {name: self._create_key(name) for name in ("tables", "data", "secrets", "logs")}
        self.boundary = self._create_boundary()
        self._bootstrap(variables)
        self.govern()

    def _create_key(self, name: str) -> str:
        key = boto3.client("kms").create_key(
            Description=f"key of {name}", Policy=policy(*self._list_statements(name))
        )
        return str(key["KeyMetadata"]["Arn"])

    def _list_statements(self, name: str) -> list[dict[str, Any]]:
        """Return the statements of a key's policy: IAM decides about the account's principals, and the key of
        logs is open to CloudWatch Logs and to alarms.
        """
        whole_account = {
            "Sid": "LetIamDecide",
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{self.account}:root"},
            "Action": "kms:*",
            "Resource": "*",
        }
        if name != "logs":
            return [whole_account]
        groups = f"arn:aws:logs:{self.region}:{self.account}:log-group:*"
        logs = {
            "Sid": "LetLogsIn",
            "Effect": "Allow",
            "Principal": {"Service": f"logs.{self.region}.amazonaws.com"},
            "Action": [
                "kms:Encrypt*",
                "kms:Decrypt*",
                "kms:ReEncrypt*",
                "kms:GenerateDataKey*",
                "kms:Describe*",
            ],
            "Resource": "*",
            "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
        }
        alarms = {
            "Sid": "LetAlarmsIn",
            "Effect": "Allow",
            "Principal": {"Service": "cloudwatch.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:SourceAccount": self.account}},
        }
        return [whole_account, logs, alarms]

    def _create_boundary(self) -> str:
        allow = {"Effect": "Allow", "Action": [f"{service}:*" for service in _SERVICES], "Resource": "*"}
        made = boto3.client("iam").create_policy(PolicyName="boundary", PolicyDocument=policy(allow))
        return str(made["Policy"]["Arn"])

    def _bootstrap(self, variables: dict[str, str]) -> None:
        command = [sys.executable, "-m", "lakeferry.deployment.cdk", "bootstrap", "--app", ""]
        options = ["--qualifier", QUALIFIER, "--toolkit-stack-name", "SecurityToolkit"]
        subprocess.run(
            [*command, *options, f"aws://{self.account}/{self.region}"],
            cwd=ROOT,
            env=variables,
            check=True,
            capture_output=True,
            timeout=300,
        )

    def govern(self) -> None:
        """Let Lake Formation govern the catalog. CDK's role for CloudFormation administers it."""
        roles = boto3.client("iam").list_roles()["Roles"]
        (deployer,) = [role["Arn"] for role in roles if f"cdk-{QUALIFIER}-cfn-exec" in role["RoleName"]]
        administrators = [deployer, f"arn:aws:iam::{self.account}:root"]
        body = {"governs": True, "administrators": administrators}
        control.call(self.aws.url, "POST", "/lake-formation", body)

    def fingerprint(self) -> str:
        """Return everything that the departments have created, without times."""
        ec2 = boto3.client("ec2")
        kms = boto3.client("kms")
        iam = boto3.client("iam")
        vpc = [{"Name": "vpc-id", "Values": [self.network.vpc]}]
        found = {
            "subnets": ec2.describe_subnets(Filters=vpc)["Subnets"],
            "groups": ec2.describe_security_groups(GroupIds=[self.network.group])["SecurityGroups"],
            "endpoints": ec2.describe_vpc_endpoints()["VpcEndpoints"],
            "interfaces": ec2.describe_network_interfaces(Filters=vpc)["NetworkInterfaces"],
            "keys": [kms.describe_key(KeyId=key)["KeyMetadata"] for key in self.keys.values()],
            "key policies": [
                kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"] for key in self.keys.values()
            ],
            "grants": [kms.list_grants(KeyId=key)["Grants"] for key in self.keys.values()],
            "boundary": iam.get_policy_version(PolicyArn=self.boundary, VersionId="v1")["PolicyVersion"],
        }
        return json.dumps(found, default=str, sort_keys=True)

    def create_bucket(self, name: str, key: str) -> None:
        """Create a bucket that is encrypted with one of the keys, and that other teams use too."""
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": self.region})
        default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": self.keys[key]}
        rule = {"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}
        s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": [rule]})
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})

    def add_objects(self, bucket: str) -> None:
        """Put objects of other teams into a bucket."""
        for path in OTHERS:
            boto3.client("s3").put_object(Bucket=bucket, Key=path, Body=path.encode())

    def fingerprint_bucket(self, name: str) -> dict[str, str]:
        """Return each version of each object with its content, and the settings of the bucket."""
        s3 = boto3.client("s3")
        found = {}
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
            assert not page.get("DeleteMarkers"), page["DeleteMarkers"]
            for version in page.get("Versions", []):
                place = {"Key": version["Key"], "VersionId": version["VersionId"]}
                body = s3.get_object(Bucket=name, **place)["Body"].read()
                found[json.dumps(place)] = body.decode("latin-1")
        for setting in ("policy", "lifecycle_configuration", "encryption", "versioning", "tagging"):
            found[setting] = _read_setting(s3, setting, name)
        return found

    def describe(self, text: str) -> str:
        """Return the shipped file for this account. Loopback addresses need no proxy, so it has none."""
        lines = [line for line in text.splitlines() if not line.startswith(("proxy =", "subnet-"))]
        start = lines.index("[network.subnets]") + 1
        subnets = zip(self.network.subnets, self.network.zones, strict=True)
        lines[start:start] = [f'{subnet} = "{zone}"' for subnet, zone in subnets]
        replaced = {
            "permissions_boundary": json.dumps(self.boundary),
            "security_groups": json.dumps([self.network.group]),
            **{name: json.dumps(arn) for name, arn in self.keys.items()},
        }
        for number, line in enumerate(lines):
            key = line.partition(" = ")[0]
            if key in replaced:
                lines[number] = f"{key} = {replaced[key]}"
        return "\n".join(lines) + "\n"


def _read_setting(s3: Any, name: str, bucket: str) -> str:
    try:
        answer = getattr(s3, f"get_bucket_{name}")(Bucket=bucket)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return json.dumps({key: value for key, value in answer.items() if key != "ResponseMetadata"})
