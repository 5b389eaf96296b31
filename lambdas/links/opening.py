"""Opens a link: GET shows the files, and POST leads to one of them.

Mail scanners follow links ahead of people, so only POST counts as a download. It answers with a presigned
URL, which works for a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import attrs
from botocore.exceptions import ClientError

from config.exports import contracts
from config.toml_model import BadFile
from lambdas import contract
from lambdas.links import pages
from lambdas.links.ledger import Ledger
from lambdas.links.pages import Offer, Response, ShownFile
from lambdas.shared.aws import read_error_code, translate_aws_errors
from lambdas.shared.clock import Clock
from lambdas.shared.link_tokens import (
    GONE,
    MALFORMED,
    NOT_RECIPIENT,
    REVOKED,
    UNKNOWN_KEY,
    USED_UP,
    BadLink,
    KeyRing,
    Link,
    SignedLink,
)
from lambdas.shared.log import Log
from lambdas.shared.s3 import Objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

#: Seconds for which a presigned URL works.
URL_SECONDS: Final = 60
_GONE: Final = ("404", "NoSuchKey", "NotFound")


@attrs.frozen
class LinkedExport:
    """`recipients` has the ids of those who get links now. A link downloads at most `downloads` files."""

    recipients: frozenset[str]
    downloads: int


@attrs.frozen
class LinkOpener:
    """`read_keys` returns the keys, read again if `newer` ones than those in memory are asked for. `exports`
    are those with links, and `prefix` is where their files are. `deployment` is the metrics' dimension."""

    objects: Objects
    ledger: Ledger
    read_keys: Callable[[bool], KeyRing]
    exports: Mapping[str, LinkedExport]
    prefix: str
    deployment: str
    clock: Clock
    log: Log

    def show(self, token: str) -> Response:
        """Answer GET. Nothing is counted as a download."""
        try:
            signed = self._require_valid(token)
            if self.ledger.read(signed.link).count >= self.exports[signed.link.export].downloads:
                raise BadLink(USED_UP, signed.link)
            offer = self._find_files(signed)
        except BadLink as bad:
            return self._refuse(bad)
        self._log("shown", signed.link)
        return pages.show_files(offer, self._find_origin(offer.files[0]))

    def download(self, token: str, chosen: str) -> Response:
        """Answer POST: lead to the file with the number `chosen`, if the link may be used once more."""
        try:
            signed = self._require_valid(token)
            files = self._find_files(signed).files
            if not chosen.isdecimal() or len(chosen) > 3 or int(chosen) >= len(files):
                raise BadLink(MALFORMED, signed.link)
            file = files[int(chosen)]
            self._require_there(signed.link, file)
            most = self.exports[signed.link.export].downloads
            if not self.ledger.count(signed.link, file.name, self.clock.time(), most):
                raise BadLink(USED_UP, signed.link)
        except BadLink as bad:
            return self._refuse(bad)
        self._log("opened", signed.link, file=file.name)
        return pages.redirect(self._presign(file))

    def _require_valid(self, token: str) -> SignedLink:
        """Raises BadLink."""
        signed = self._verify(token)
        export = self.exports.get(signed.link.export)
        if export is None or signed.link.recipient not in export.recipients:
            raise BadLink(NOT_RECIPIENT, signed.link)
        if any(entry.ends(signed) for entry in self.ledger.read_revocations(signed.link.export)):
            raise BadLink(REVOKED, signed.link)
        return signed

    def _verify(self, token: str) -> SignedLink:
        """Raises BadLink. A key that isn't known may be newer than those in memory."""
        now = self.clock.time()
        try:
            return self.read_keys(False).verify(token, now=now)
        except BadLink as bad:
            if bad.reason != UNKNOWN_KEY:
                raise
        return self.read_keys(True).verify(token, now=now)

    def _find_files(self, signed: SignedLink) -> Offer:
        """Return the files of the link's generation. Raises BadLink if it was never published, or is gone."""
        link = signed.link
        folder = f"{self.prefix}/{link.export}"
        stored = self.objects.read(f"{folder}/manifests/{link.window}.json")
        manifest = stored.document if stored else {}
        newest = int(manifest.get("generation") or 0)
        described: Mapping[str, Any] | None = manifest
        if newest != link.generation:
            described = self._find_earlier(folder, link, manifest)
        files = _list_shown((described or {}).get("files") or [], f"{folder}/data/{link.window}/")
        if not files:
            raise BadLink(GONE, link)
        return Offer(
            title=_read_title(link.export),
            window=link.window,
            files=files,
            until=f"{datetime.fromtimestamp(signed.expires, UTC):%d %b %Y %H:%M} UTC",
            newer=newest if newest > link.generation else None,
        )

    def _find_earlier(self, folder: str, link: Link, manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the part of the run's record that published the link's generation."""
        for generation in manifest.get("generations") or []:
            if generation.get("generation") != link.generation:
                continue
            record = self.objects.read(f"{folder}/runs/{generation['run_id']}.json")
            windows = record.document.get("windows", []) if record else []
            for window in windows:
                if window.get("window") == link.window and window.get("generation") == link.generation:
                    return dict(window)
        return None

    def _require_there(self, link: Link, file: ShownFile) -> None:
        """Raise BadLink if the file has expired."""
        with translate_aws_errors(f"looking for s3://{self.objects.bucket}/{file.key}"):
            try:
                self.objects.client.head_object(Bucket=self.objects.bucket, Key=file.key)
            except ClientError as error:
                if read_error_code(error) in _GONE:
                    raise BadLink(GONE, link) from None
                raise

    def _presign(self, file: ShownFile) -> str:
        name = quote(file.name, safe="")
        return presign(
            self.objects.client, self.objects.bucket, file.key, f"attachment; filename*=UTF-8''{name}"
        )

    def _find_origin(self, file: ShownFile) -> str:
        parts = urlsplit(self._presign(file))
        return f"{parts.scheme}://{parts.netloc}"

    def _refuse(self, bad: BadLink) -> Response:
        """Count the refusal in CloudWatch's embedded metric format, and log whose link it was, if that is
        proven."""
        metric = {
            "Namespace": contract.METRICS,
            "Dimensions": [[contract.DEPLOYMENT_DIMENSION], [contract.DEPLOYMENT_DIMENSION, "Reason"]],
            "Metrics": [{"Name": contract.LINKS_REFUSED, "Unit": "Count"}],
        }
        fields = {
            "_aws": {"Timestamp": int(self.clock.time() * 1000), "CloudWatchMetrics": [metric]},
            contract.DEPLOYMENT_DIMENSION: self.deployment,
            "Reason": bad.reason,
            contract.LINKS_REFUSED: 1,
        }
        self._log("refused", bad.link, **fields)
        return pages.refuse()

    def _log(self, message: str, link: Link | None, **fields: Any) -> None:
        self.log.info(message, **(attrs.asdict(link) if link else {}), **fields)


def presign(client: S3Client, bucket: str, key: str, disposition: str) -> str:
    return client.generate_presigned_url(
        "get_object",
        Params={"Bucket": bucket, "Key": key, "ResponseContentDisposition": disposition},
        ExpiresIn=URL_SECONDS,
    )


def _list_shown(files: list[Mapping[str, Any]], folder: str) -> list[ShownFile]:
    """Return the delivered files. A key elsewhere than in the window's folder is none of them."""
    return [
        ShownFile(PurePosixPath(file["key"]).name, file["key"], int(file.get("size") or 0))
        for file in files
        if file.get("role") in contract.DELIVERED_ROLES and str(file["key"]).startswith(folder)
    ]


def _read_title(export: str) -> str:
    try:
        return contracts.load(export).title
    except BadFile:
        return export
