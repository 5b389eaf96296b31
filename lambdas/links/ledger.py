"""What became of links: how often files were downloaded with them, and which were revoked.

Each link has an object in S3 that counts its downloads, and each export one that lists its revocations.
Both are written conditionally, so downloads at the same time are all counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import cattrs

from lambdas.links import errors as link_errors
from lambdas.shared.errors import Transient
from lambdas.shared.link_tokens import Link, SignedLink
from lambdas.shared.s3 import Objects

_REVOKED: Final = "revoked.json"
#: How often a write is tried while others are faster.
_TRIES: Final = 20


@attrs.frozen
class Downloads:
    """`first` and `last` are in seconds since 1970; `files` has the count by file name."""

    count: int = 0
    first: int = 0
    last: int = 0
    files: dict[str, int] = attrs.Factory(dict)


@attrs.frozen
class Revocation:
    """Ends links that were signed until `at`, in seconds since 1970. "" is any window or any recipient."""

    at: int
    window: str = ""
    recipient: str = ""

    def ends(self, signed: SignedLink) -> bool:
        return (
            signed.signed <= self.at
            and self.window in ("", signed.link.window)
            and self.recipient in ("", signed.link.recipient)
        )


@attrs.frozen
class Ledger:
    """`prefix` is the beginning of the keys, without a slash at the end."""

    objects: Objects
    prefix: str

    def read_revocations(self, export: str) -> list[Revocation]:
        return self._read_revocations(export)[0]

    def revoke(self, export: str, revocation: Revocation) -> None:
        """Raises Transient if others write all the time. Doing it twice has no effect."""
        for _ in range(_TRIES):
            known, etag = self._read_revocations(export)
            replaced = attrs.evolve(revocation, at=0)
            others = [entry for entry in known if attrs.evolve(entry, at=0) != replaced]
            document = {"revoked": [attrs.asdict(entry) for entry in [*others, revocation]]}
            if self.objects.write(f"{self.prefix}/{export}/{_REVOKED}", document, over=etag or None):
                return
        raise Transient(link_errors.BUSY, f"the revocations of {export}")

    def count(self, link: Link, file: str, now: float, most: int) -> bool:
        """Count a download. Return whether it is one of the first `most`: if not, nothing was counted.

        Raises Transient if others write all the time.
        """
        key = f"{self.prefix}/{link.name}.json"
        for _ in range(_TRIES):
            stored = self.objects.read(key)
            before = cattrs.structure(stored.document, Downloads) if stored else Downloads()
            if before.count >= most:
                return False
            after = Downloads(
                count=before.count + 1,
                first=before.first or int(now),
                last=int(now),
                files={**before.files, file: before.files.get(file, 0) + 1},
            )
            if self.objects.write(key, attrs.asdict(after), over=stored.etag if stored else None):
                return True
        raise Transient(link_errors.BUSY, f"the downloads of {link.name}")

    def read(self, link: Link) -> Downloads:
        stored = self.objects.read(f"{self.prefix}/{link.name}.json")
        return cattrs.structure(stored.document, Downloads) if stored else Downloads()

    def list_downloads(self, export: str) -> Iterator[tuple[Link, Downloads]]:
        """Yield the links of an export that were used, by window, generation and recipient."""
        beginning = f"{self.prefix}/{export}/"
        for listed in self.objects.list(beginning):
            window, slash, name = listed.key.removeprefix(beginning).partition("/")
            generation, _, recipient = name.removesuffix(".json").partition("-")
            if slash and generation.isdigit():
                link = Link(export, window, int(generation), recipient)
                yield link, self.read(link)

    def _read_revocations(self, export: str) -> tuple[list[Revocation], str]:
        """Return them with the ETag of their object, "" if there is none yet."""
        stored = self.objects.read(f"{self.prefix}/{export}/{_REVOKED}")
        if stored is None:
            return [], ""
        entries: list[dict[str, Any]] = stored.document.get("revoked", [])
        return [cattrs.structure(entry, Revocation) for entry in entries], stored.etag
