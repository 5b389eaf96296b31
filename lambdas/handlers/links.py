"""Links that open. API Gateway invokes the function with a request (payload format 2.0)."""

from __future__ import annotations

import base64
import binascii
import functools
import os
from typing import Any, Final
from urllib.parse import parse_qs

from botocore.config import Config

from lambdas.handlers.runtime import LambdaContext, entry_point, get_client
from lambdas.links.ledger import Ledger
from lambdas.links.opening import LinkedExport, LinkOpener
from lambdas.links.pages import Response
from lambdas.shared import deployment
from lambdas.shared.clock import Clock, SystemClock
from lambdas.shared.link_tokens import KeyRing, parse_keys
from lambdas.shared.log import Log
from lambdas.shared.s3 import Objects
from lambdas.shared.secrets import SecretStore
from lambdas.shared.settings import LinkSettings

#: A presigned URL needs Signature Version 4 and the endpoint of the region, in every region.
S3_CONFIG: Final = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": 3},
    signature_version="s3v4",
    s3={"us_east_1_regional_endpoint": "regional"},
)
#: Seconds after which keys in memory are read again, and for which a key that isn't known isn't looked for.
KEYS_LIVE: Final = 300.0
KEYS_REST: Final = 30.0
_LONGEST_BODY: Final = 1000


class KeyCache:
    """The keys, read again when they are old, or when a link has a key that isn't among them."""

    def __init__(self, secret: str, audience: str, clock: Clock) -> None:
        self._secret = secret
        self._audience = audience
        self._clock = clock
        self._keys: KeyRing | None = None
        self._read_at = 0.0

    def read(self, newer: bool) -> KeyRing:
        age = self._clock.time() - self._read_at
        if self._keys is None or age > (KEYS_REST if newer else KEYS_LIVE):
            fields = SecretStore(get_client("secretsmanager")).read(self._secret)
            self._keys = parse_keys(fields, self._audience)
            self._read_at = self._clock.time()
        return self._keys


def open_link(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer a request. The log has neither the token nor the presigned URL."""
    with entry_point(request=(event.get("requestContext") or {}).get("requestId")) as log:
        return answer(_make_opener(log), event).document()


def answer(opener: LinkOpener, event: dict[str, Any]) -> Response:
    token = str((event.get("pathParameters") or {}).get("token") or "")
    if event["requestContext"]["http"]["method"] == "POST":
        return opener.download(token, _read_chosen(event))
    return opener.show(token)


def _read_chosen(event: dict[str, Any]) -> str:
    """Return the number of the file in the form, "" if there is none. API Gateway encodes forms in Base64."""
    body = str(event.get("body") or "")[:_LONGEST_BODY]
    if event.get("isBase64Encoded"):
        try:
            body = base64.b64decode(body, validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return parse_qs(body).get("file", [""])[0]


def _make_opener(log: Log) -> LinkOpener:
    settings = LinkSettings.from_environment(os.environ)
    client = get_client("s3", S3_CONFIG)
    objects = Objects(client, settings.bucket)
    return LinkOpener(
        objects=objects,
        ledger=Ledger(objects, settings.links),
        read_keys=_open_keys(settings.secret, settings.deployment).read,
        exports=_read_exports(settings.settings),
        prefix=settings.prefix.strip("/"),
        deployment=settings.deployment,
        clock=SystemClock(),
        log=log,
    )


@functools.cache
def _open_keys(secret: str, audience: str) -> KeyCache:
    return KeyCache(secret, audience, SystemClock())


@functools.cache
def _read_exports(url: str) -> dict[str, LinkedExport]:
    """Return the exports with links. A deployment writes its settings to another URL when they change."""
    return {
        export.export: LinkedExport(frozenset(export.recipient_ids), export.link_downloads)
        for export in deployment.read(get_client("s3", S3_CONFIG), url).exports
        if export.recipient_ids and export.link_days
    }
