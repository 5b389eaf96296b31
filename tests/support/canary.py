"""Recognisable secrets, and the search for them in everything that a test run has written."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import attrs
import boto3

from tests.support.lake import KEY

#: The secret key with which processes of the tests sign calls. Without IAM, the embedded AWS accepts any.
#: It is put together, because tests make copies of this file.
AWS_SECRET = "/".join(["canary", "Zq7+0SecretThatNobodyMayWriteDown"])
_SECRETS = {"the pseudonymisation key": KEY, "the AWS secret key": AWS_SECRET.encode()}
#: The inner and outer pad of HMAC are forms of the key.
_SECRETS |= {f"the pad 0x{pad:02x}": bytes(byte ^ pad for byte in KEY) for pad in (0x36, 0x5C)}


@attrs.define
class Canary:
    """Searches what was written for secrets.

    `found` has each secret with the name of the text that contains it.
    """

    found: list[str] = attrs.field(factory=list)
    pieces: int = 0

    def look(self, where: str, content: bytes) -> None:
        self.pieces += 1
        lowered = content.lower()
        for name, secret in _SECRETS.items():
            if any(form in content for form in _forms(secret)) or secret.hex().encode() in lowered:
                self.found.append(f"{name} in {where}")

    def look_below(self, folder: Path) -> None:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.look(file.name, file.name.encode() + b"\n" + file.read_bytes())

    def look_in_buckets(self) -> None:
        """Search the keys and contents of all objects in the AWS that the environment names."""
        s3 = boto3.client("s3")
        for bucket in s3.list_buckets()["Buckets"]:
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
                for item in page.get("Contents", []):
                    body = s3.get_object(Bucket=bucket["Name"], Key=item["Key"])["Body"].read()
                    self.look(f"{bucket['Name']}/{item['Key']}", item["Key"].encode() + b"\n" + body)


def _forms(secret: bytes) -> Iterator[bytes]:
    """Return the secret, and its base64 forms at each offset, without the characters that depend on
    neighbouring bytes.
    """
    yield secret
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(secret)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + secret + bytes(3))[first:last]
