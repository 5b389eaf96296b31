"""The pseudonymisation key, from Secrets Manager at run time and nowhere else."""

from __future__ import annotations

import base64
import binascii
import json

import attrs

from glue_jobs.errors import BadInput, StorageProblem
from glue_jobs.pseudonyms import pads
from glue_jobs.store import Services, told


@attrs.frozen
class PseudonymKey:
    """`version` names the key without telling it: pseudonyms of two versions can't be compared."""

    value: bytes = attrs.field(repr=False)
    version: str


def fetch(services: Services, secret: str) -> PseudonymKey:
    """The current version of a secret like {"key": "<32 to 64 bytes in base64>"}.

    Raises BadInput where no secret was named or it holds something else, StorageProblem where it can't be read.
    """
    if not secret:
        raise BadInput("EXP-KEY-MISSING", "the contract hashes columns, but no key was named", "Give --pseudonym-secret")
    try:
        with told(f"reading the secret {secret}"):
            answer = services.secrets.get_secret_value(SecretId=secret)
    except StorageProblem as problem:
        raise StorageProblem(
            "EXP-KEY-UNREADABLE",
            f"the pseudonymisation key can't be had: {problem.what}",
            "Check the secret's name and the role's right to read it. Nothing leaves without its key",
        ) from None
    value = _decoded(answer.get("SecretString", ""))
    if value is None:
        raise BadInput(
            "EXP-KEY-FORM",
            f"the secret {secret} does not hold a key in the form expected",
            'Store {"key": "<32 to 64 random bytes in base64>"}',
        )
    return PseudonymKey(value, answer["VersionId"])


def _decoded(text: str) -> bytes | None:
    try:
        value = base64.b64decode(json.loads(text)["key"], validate=True)
        pads(value)
    except (ValueError, KeyError, TypeError, binascii.Error):
        return None
    return value
