"""Versions of a secret as Secrets Manager keeps them.

- The ClientRequestToken becomes the version's id, for CreateSecret too. Stock MiniStack invents another.
- PutSecretValue, or CreateSecret, with a token that is in use changes nothing where the value is the same, and is
  ResourceExistsException where it differs. Stock overwrites the version.
- A secret that was made without a value has no version: GetSecretValue is ResourceNotFoundException. Stock answers
  with neither SecretString nor SecretBinary.
"""

from __future__ import annotations

from typing import Any

from simulators.aws.answers import json_answer, json_error
from simulators.aws.hooks import Answer, Original, Patch, ministack

PATCH = Patch("secrets_versions")
_SECRETS = "ministack.services.secretsmanager"


@PATCH.replaces(_SECRETS, "_create_secret", "data")
def create_secret(original: Original, data: dict[str, Any]) -> Answer:
    secrets = ministack("services.secretsmanager")
    token = data.get("ClientRequestToken")
    existing = secrets._secrets.get(data.get("Name"))
    if existing and token and token in existing["Versions"]:
        return _repeated(existing, token, data)
    answer: Answer = original(data)
    if answer[0] != 200:
        return answer
    secret = secrets._secrets[data["Name"]]
    (made,) = secret["Versions"]
    if "SecretString" not in data and "SecretBinary" not in data:
        secret["Versions"].clear()
        return _answer(secret)
    version_id = token or made
    secret["Versions"][version_id] = secret["Versions"].pop(made)
    return _answer(secret, VersionId=version_id)


@PATCH.replaces(_SECRETS, "_put_secret_value", "data")
def put_secret_value(original: Original, data: dict[str, Any]) -> Answer:
    _, secret = ministack("services.secretsmanager")._resolve(data.get("SecretId"))
    token = data.get("ClientRequestToken")
    if secret and not secret.get("DeletedDate") and token and token in secret["Versions"]:
        return _repeated(secret, token, data)
    return original(data)


def _repeated(secret: dict[str, Any], token: str, data: dict[str, Any]) -> Answer:
    version = secret["Versions"][token]
    if any(version.get(field) != data.get(field) for field in ("SecretString", "SecretBinary")):
        message = f"ClientRequestToken {token} is already in use for a version of this secret with another value."
        return json_error("ResourceExistsException", message)
    return _answer(secret, VersionId=token, VersionStages=list(version["Stages"]))


def _answer(secret: dict[str, Any], **fields: Any) -> Answer:
    return json_answer({"ARN": secret["ARN"], "Name": secret["Name"], **fields})
