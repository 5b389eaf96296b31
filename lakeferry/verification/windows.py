"""A published window of an export: its files are those of the manifest, and have no personal data."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

import attrs

from config.exports.contract import Column, Contract
from config.exports.windows import Window
from glue_jobs.delivery.csv import build_header
from glue_jobs.delivery.reading import Part
from glue_jobs.delivery.verify import FileStats, verify_file
from glue_jobs.errors import Inconsistent
from glue_jobs.store import ObjectBody, translate_aws_errors
from lakeferry.exports.deployed import DeployedExport
from lakeferry.verification.evidence import Answer, Asked, Finding

FILES: Final = "the published files are those of the manifest"
ROWS: Final = "the data file has the rows that the manifest counts"
COLUMNS: Final = "the data file has the columns of the contract, and no other"
PERSONAL: Final = "no column has personal data that the contract doesn't keep"
_CHUNK: Final = 1 << 20
_PSEUDONYM: Final = re.compile("[0-9a-f]{64}")
_MASK: Final = "***"


@attrs.define
class PublishedWindow:
    """`manifest` is None if it can't be read. `data` gets the bytes of the data file."""

    export: DeployedExport
    window: Window
    manifest: dict[str, Any] | None
    data: IO[bytes]
    has_data: bool = False

    @property
    def contract(self) -> Contract:
        """Return the contract of this clone, for the deployed first day."""
        contract = self.export.contract
        return attrs.evolve(contract.starting_by(self.export.rule.first), window=self.export.rule)

    @property
    def about(self) -> str:
        return f"{self.export.name} {self.window.label}"

    @property
    def is_of_contract(self) -> bool:
        """Return whether the contract of this clone made the file."""
        made_by = self.manifest["contract"]["sha256"] if self.manifest else ""
        return bool(made_by == self.export.contract.sha256)

    def check(self) -> Iterator[Finding]:
        yield self._ask(FILES).look(self._look_at_files)
        for claim, look in (
            (ROWS, self._look_at_rows),
            (COLUMNS, self._look_at_columns),
            (PERSONAL, self._look_for_personal_data),
        ):
            asked = self._ask(claim)
            if not self.has_data:
                yield asked.unknown("the data file was not read")
            elif not self.is_of_contract and claim != ROWS:
                yield asked.unknown(
                    "another version of the contract made the file than the one in this clone"
                )
            else:
                yield asked.look(look)

    def _ask(self, claim: str) -> Asked:
        return Asked(claim, self.about, "S3: GetObject of the manifest and its files")

    def _look_at_files(self) -> Answer:
        if self.manifest is None:
            return Answer(None, "the manifest can't be read")
        wrong = []
        for file in self.manifest["files"]:
            is_data = file["role"] == "data"
            size, sha256 = self._read_object(file["key"], self.data if is_data else None)
            if (size, sha256) != (file["size"], file["sha256"]):
                wrong.append(f"{file['key']} has {size} bytes with SHA-256 {sha256[:12]}…")
            self.has_data = self.has_data or is_data
        count = len(self.manifest["files"])
        return Answer(not wrong, "; ".join(wrong) or f"{count} files, sizes and SHA-256 as in the manifest")

    def _read_object(self, key: str, into: IO[bytes] | None) -> tuple[int, str]:
        """Return the size and the SHA-256 of an object. Raises StorageProblem."""
        bucket = self.export.objects.bucket
        digest = hashlib.sha256()
        size = 0
        with translate_aws_errors(f"reading s3://{bucket}/{key}"):
            body = ObjectBody(self.export.ctx.client("s3"), bucket, key)
            while chunk := body.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                if into:
                    into.write(chunk)
        return size, digest.hexdigest()

    def _look_at_rows(self) -> Answer:
        counted = sum(1 for _ in self._read_rows())
        wanted = self._manifest["rows"]["rows"]
        listed = [file["rows"] for file in self._manifest["files"] if file["role"] == "data"]
        seen = f"{counted:,} rows in the file, {wanted:,} in the manifest"
        return Answer(counted == wanted and listed == [counted], seen)

    def _look_at_columns(self) -> Answer:
        names = [column.name for column in self.contract.columns]
        header = self._read_header()
        return Answer(header == names, f"{len(header)} columns: {', '.join(header)}")

    def _look_for_personal_data(self) -> Answer:
        """Search the file as the job does before it publishes, and look at the form of treated values."""
        treated = [column for column in self.contract.columns if _is_treated(column)]
        wrong = {column.name: 0 for column in treated}
        places = {column.name: index for index, column in enumerate(self.contract.columns)}
        for row in self._read_rows():
            for column in treated:
                if not self._has_form(column, row[places[column.name]]):
                    wrong[column.name] += 1
        found = [f"{name}: {count} values without the form of its treatment" for name, count in wrong.items()
                 if count]  # fmt: skip
        try:
            stats = self._verify()
        except Inconsistent as error:
            return Answer(False, f"{error.code}  {error.what}")
        found += [f"{what} in {rows} rows" for what, rows in stats.personal.items()]
        dropped = [column.name for column in self.export.contract.column if not column.delivered]
        found += [f"{name} is in the file, and the contract drops it" for name in dropped
                  if name in self._read_header()]  # fmt: skip
        names = ", ".join(column.name for column in treated) or "no column is treated"
        return Answer(not found, "; ".join(found) or f"searched {stats.rows:,} rows; treated: {names}")

    def _has_form(self, column: Column, cell: str) -> bool:
        if cell == self.contract.delivery.null_text:
            return True
        if column.is_hashed:
            return _PSEUDONYM.fullmatch(cell) is not None
        return cell.startswith(_MASK)

    def _verify(self) -> FileStats:
        (file,) = [file for file in self._manifest["files"] if file["role"] == "data"]
        self.data.seek(0)
        whole = Part(1, "", file["size"], file["sha256"])
        header = build_header(self.contract.columns, self.contract.delivery)
        return verify_file(file["key"], _Unclosed(self.data), [whole], self.contract, header)

    def _read_header(self) -> list[str]:
        return next(self._read_records(), [])

    def _read_rows(self) -> Iterator[list[str]]:
        records = self._read_records()
        next(records, None)
        return records

    def _read_records(self) -> Iterator[list[str]]:
        """Read the file in the form that the manifest describes."""
        form = self._manifest["form"]
        self.data.seek(0)
        stream: Any = gzip.GzipFile(fileobj=self.data) if form["gzip"] else _Unclosed(self.data)
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="")
        return csv.reader(text, strict=True, delimiter=form["delimiter"])

    @property
    def _manifest(self) -> dict[str, Any]:
        assert self.manifest is not None, "the files were read, so there is a manifest"
        return self.manifest


class _Unclosed(io.RawIOBase):
    """The bytes of a file that stays open when its reader is closed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _is_treated(column: Column) -> bool:
    return column.personal is not None and column.personal.treatment in ("hash", "mask")


@contextmanager
def open_window(export: DeployedExport, window: Window) -> Iterator[PublishedWindow]:
    """Read the manifest of a window. Its data file is kept in a temporary file without a name."""
    key = f"{export.locate_folder('manifests')}{window.label}.json"
    with tempfile.TemporaryFile() as data:
        yield PublishedWindow(export, window, _try(lambda: export.objects.read(key)), data)


def _try(read: Callable[[], Any]) -> dict[str, Any] | None:
    try:
        stored = read()
    except Exception:  # what is asked about the window then says that the manifest can't be read
        return None
    return stored.document if stored else None
