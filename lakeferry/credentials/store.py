"""Read and write keys in Secrets Manager: the current version, and a pending one that waits for an admin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas.shared.aws import read_error_code
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import CURRENT, Fields, reveal_fields

#: The staging label of a generated key pair whose public key the vendor doesn't have yet.
GENERATED: Final = "LAKEFERRY_GENERATED"
_ABSENT: Final = "ResourceNotFoundException"


@attrs.frozen
class StoredSecret:
    """A secret after it was written.

    `changed` is false if it already had this value; `previous` is true if the old value remains as
    AWSPREVIOUS.
    """

    name: str
    arn: str
    version: str
    changed: bool
    previous: bool

    def describe(self) -> str:
        if not self.changed:
            return f"{self.name} already has this value ({self.arn})"
        previous = "; the previous value remains as AWSPREVIOUS" if self.previous else ""
        return f"Stored in {self.name}, {self.arn}{previous}"

    def document(self) -> dict[str, Any]:
        return {"secret": self.name, "arn": self.arn, "version": self.version, "changed": self.changed}


@attrs.frozen
class Value:
    """A version of a secret. `fields` are those of its JSON object, empty if the value is any other text."""

    version: str
    fields: Mapping[str, Secret]


def read_value(ctx: DeploymentContext, name: str, label: str = CURRENT) -> Value | None:
    """Return the version with this staging label, or None if it or the secret doesn't exist.

    Raises CommandFailed.
    """
    client = ctx.client("secretsmanager")
    with translate_aws_errors(f"reading secret {name}"):
        try:
            answer = client.get_secret_value(SecretId=name, VersionStage=label)
        except ClientError as error:
            if read_error_code(error) == _ABSENT:
                return None
            if read_error_code(error) == "InvalidRequestException":
                raise _explain_deleted(ctx, name) from None
            raise
    return Value(answer["VersionId"], _parse_fields(answer.get("SecretString", "")))


def put_current(ctx: DeploymentContext, name: str, fields: Fields) -> StoredSecret:
    """Make `fields` the current version; the current one becomes AWSPREVIOUS. Raises CommandFailed."""
    secret = _describe(ctx, name) or _create(ctx, name)
    before = read_value(ctx, name)
    if before and reveal_fields(before.fields) == reveal_fields(fields):
        return StoredSecret(name, secret["ARN"], before.version, changed=False, previous=False)
    version = _put(ctx, name, fields, [CURRENT])
    return StoredSecret(name, secret["ARN"], version, changed=True, previous=before is not None)


def stage_pending(ctx: DeploymentContext, name: str, fields: Fields) -> str:
    """Store `fields` as a version that isn't current, and return the secret's ARN.

    In a secret without versions, Secrets Manager makes the first one current all the same.
    """
    secret = _describe(ctx, name) or _create(ctx, name)
    _put(ctx, name, fields, [GENERATED])
    return str(secret["ARN"])


def promote(ctx: DeploymentContext, name: str, value: Value) -> StoredSecret:
    """Make a pending version current. Raises CommandFailed."""
    client = ctx.client("secretsmanager")
    before = read_value(ctx, name)
    arn = str((_describe(ctx, name) or {})["ARN"])
    replaces = before is not None and before.version != value.version
    with translate_aws_errors(f"writing secret {name}"):
        if before is None or replaces:
            source = {"RemoveFromVersionId": before.version} if before else {}
            client.update_secret_version_stage(
                SecretId=name, VersionStage=CURRENT, MoveToVersionId=value.version, **source
            )
        client.update_secret_version_stage(
            SecretId=name, VersionStage=GENERATED, RemoveFromVersionId=value.version
        )
    return StoredSecret(name, arn, value.version, changed=True, previous=replaces)


def _put(ctx: DeploymentContext, name: str, fields: Fields, labels: list[str]) -> str:
    with translate_aws_errors(f"writing secret {name}"):
        answer = ctx.client("secretsmanager").put_secret_value(
            SecretId=name, SecretString=json.dumps(reveal_fields(fields)), VersionStages=labels
        )
    return str(answer["VersionId"])


def _create(ctx: DeploymentContext, name: str) -> dict[str, Any]:
    with translate_aws_errors(f"creating secret {name}"):
        created: dict[str, Any] = ctx.client("secretsmanager").create_secret(
            Name=name, Description="A key that Lakeferry deploys with, stored by `lakeferry secrets set`"
        )
    return created


def _describe(ctx: DeploymentContext, name: str) -> dict[str, Any] | None:
    """Return the secret's description, or None if it doesn't exist."""
    with translate_aws_errors(f"describing secret {name}"):
        try:
            secret: dict[str, Any] = ctx.client("secretsmanager").describe_secret(SecretId=name)
        except ClientError as error:
            if read_error_code(error) == _ABSENT:
                return None
            raise
    if secret.get("DeletedDate"):
        raise _explain_deleted(ctx, name)
    return secret


def _explain_deleted(ctx: DeploymentContext, name: str) -> CommandFailed:
    hint = (
        f"Restore it with `aws secretsmanager restore-secret --secret-id {name} --region {ctx.region}`, "
        "then run this again"
    )
    return CommandFailed("SECRETS-DELETED", f"secret {name} is scheduled for deletion", hint)


def _parse_fields(text: str) -> dict[str, Secret]:
    try:
        fields = json.loads(text)
        return {str(name): Secret(str(value)) for name, value in fields.items()}
    except (ValueError, AttributeError):
        return {}
