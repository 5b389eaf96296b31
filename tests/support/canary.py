"""Recognisable secrets, and the search for them in everything that a test run has written."""

from __future__ import annotations

import base64
import functools
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


#: The files that this process has searched, with size and time.
_searched: set[tuple[str, int, int]] = set()


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
            if any(form in content for form in _list_forms(secret)) or secret.hex().encode() in lowered:
                self.found.append(f"{name} in {where}")

    def look_below(self, folder: Path) -> None:
        """Search the files that nobody in this process has searched yet, or that have changed since."""
        for file in sorted(folder.rglob("*")):
            if not file.is_file():
                continue
            facts = file.stat()
            known = (str(file), facts.st_size, facts.st_mtime_ns)
            if known not in _searched:
                _searched.add(known)
                self.look(file.name, file.name.encode() + b"\n" + file.read_bytes())

    def look_in_buckets(self) -> None:
        """Search the keys and contents of all objects in the AWS that the environment names."""
        s3 = boto3.client("s3")
        for bucket in s3.list_buckets()["Buckets"]:
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
                for item in page.get("Contents", []):
                    body = s3.get_object(Bucket=bucket["Name"], Key=item["Key"])["Body"].read()
                    self.look(f"{bucket['Name']}/{item['Key']}", item["Key"].encode() + b"\n" + body)


@functools.cache
def _list_forms(secret: bytes) -> list[bytes]:
    """Return the secret, and its base64 forms at each offset, without the characters that depend on
    neighbouring bytes.
    """
    forms = [secret]
    for before in range(3):
        first = -(-before * 8 // 6)
        last = (before + len(secret)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.append(encode(bytes(before) + secret + bytes(3))[first:last])
    return forms
