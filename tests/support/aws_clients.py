"""boto3 clients of an embedded AWS, without retries, and helpers that create resources."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from functools import cached_property

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

PART = 5 * 1024 * 1024
_numbers = itertools.count(1)


class Clients:
    """Clients with the credentials of `server`'s root user, or with `credentials`."""

    def __init__(self, server, credentials=None):
        self.server = server
        self._credentials = credentials or {
            "AccessKeyId": "test",
            "SecretAccessKey": "test",
            "SessionToken": None,
        }

    def client(self, service, region=None, **config):
        return boto3.client(
            service,
            endpoint_url=self.server.url,
            region_name=region or self.server.region,
            aws_access_key_id=self._credentials["AccessKeyId"],
            aws_secret_access_key=self._credentials["SecretAccessKey"],
            aws_session_token=self._credentials["SessionToken"],
            config=Config(
                request_checksum_calculation="when_required", retries={"total_max_attempts": 1}, **config
            ),
        )

    s3 = cached_property(lambda self: self.client("s3"))
    glue = cached_property(lambda self: self.client("glue"))
    secrets = cached_property(lambda self: self.client("secretsmanager"))
    iam = cached_property(lambda self: self.client("iam"))
    sts = cached_property(lambda self: self.client("sts"))
    dynamodb = cached_property(lambda self: self.client("dynamodb"))
    functions = cached_property(lambda self: self.client("lambda"))

    def new_bucket(self):
        name = f"bucket-{next(_numbers)}"
        self.s3.create_bucket(
            Bucket=name, CreateBucketConfiguration={"LocationConstraint": self.server.region}
        )
        return name

    def new_database(self):
        name = f"lkc-demo{next(_numbers):02}"
        self.glue.create_database(DatabaseInput={"Name": name})
        return name

    def arn(self, service, resource):
        return f"arn:aws:{service}:{self.server.region}:{self.server.account}:{resource}"

    def new_role(self, *statements, external_id=None):
        """Create a role and return its ARN. Each statement is (actions, resources)."""
        name = f"role-{next(_numbers)}"
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{self.server.account}:root"},
            "Action": "sts:AssumeRole",
        }
        if external_id:
            trust["Condition"] = {"StringEquals": {"sts:ExternalId": external_id}}
        allowed = [
            {"Effect": "Allow", "Action": actions, "Resource": resources} for actions, resources in statements
        ]
        role = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]
        self.iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(*allowed))
        return role["Arn"]

    def assuming(self, role_arn, **given):
        answer = self.sts.assume_role(RoleArn=role_arn, RoleSessionName="test", **given)
        return Clients(self.server, answer["Credentials"])

    def upload(self, bucket, key, bodies, **made_with):
        """Start an upload and send its parts. Return its id and the list of parts that completes it."""
        upload_id = self.s3.create_multipart_upload(Bucket=bucket, Key=key, **made_with)["UploadId"]
        parts = []
        for number, body in enumerate(bodies, 1):
            checksum = {"ChecksumSHA256": sha256(body)} if made_with else {}
            answer = self.s3.upload_part(
                Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=body, **checksum
            )
            parts.append({"PartNumber": number, "ETag": answer["ETag"], **checksum})
        return upload_id, parts

    def complete(self, bucket, key, upload_id, parts, **given):
        return self.s3.complete_multipart_upload(
            Bucket=bucket, Key=key, UploadId=upload_id, MultipartUpload={"Parts": parts}, **given
        )


def policy(*statements):
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def sha256(body):
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def error_of(call, *arguments, **named):
    """Return the code of AWS's error, or None if the call succeeds."""
    try:
        call(*arguments, **named)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None
