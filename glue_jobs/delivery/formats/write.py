"""Write the rows of the verified CSV file in the contract's other formats, read each file back, and compare.

Everything here runs on the driver, from the bytes of the CSV file in S3. It needs no key, and can't deliver
anything that the CSV file doesn't.
"""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

import attrs
import pyarrow as pa

from config.exports.contract import Contract
from config.exports.file_model import Format
from glue_jobs.delivery import csv
from glue_jobs.delivery.datapackage import MEDIA_TYPES
from glue_jobs.delivery.formats import jsonl, parquet
from glue_jobs.delivery.formats.tables import Fingerprint, divide, read_typed
from glue_jobs.delivery.formats.upload import ObjectWriter
from glue_jobs.delivery.manifest import File
from glue_jobs.delivery.multipart import StoredFile
from glue_jobs.delivery.reading import CheckedBody, Part
from glue_jobs.errors import Inconsistent
from glue_jobs.store import Bucket, ObjectBody, translate_aws_errors

_NAMES: Final[dict[Format, str]] = {"parquet": "Parquet file", "jsonl": "JSON Lines file", "xlsx": "workbook"}


class _Writer(Protocol):
    def add(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...

    def discard(self) -> None: ...


@attrs.frozen
class Delivery:
    """The verified CSV file in the bucket, and its rows. `as_text` has the columns that a workbook has as
    texts, because Excel can't hold their values. `scratch` is a folder for files in progress.
    """

    bucket: Bucket
    contract: Contract
    csv: StoredFile
    rows: int
    as_text: frozenset[str]
    scratch: Path

    def key(self, form: Format) -> str:
        """Return the key of a format's file, beside the CSV file."""
        relative = self.bucket.relative(self.csv.key)
        ending = ".gz" if form == "jsonl" and self.contract.delivery.gzip else ""
        return re.sub(r"\.csv(\.gz)?$", f".{form}{ending}", relative)

    def path(self, form: Format) -> Path:
        return self.scratch / f"rows.{form}"

    def read_csv(self) -> Iterator[pa.Table]:
        header = csv.build_header(self.contract.columns, self.contract.delivery)
        body = ObjectBody(self.bucket.s3, self.bucket.name, self.csv.key, self.bucket.pause)
        checked = CheckedBody(body, self.csv.parts)
        yield from divide(read_typed(checked, self.contract, header))
        checked.finish()


@attrs.frozen
class _Output:
    form: Format
    writer: _Writer
    target: ObjectWriter

    def finish(self, delivery: Delivery) -> list[Part]:
        self.writer.close()
        if self.form == "xlsx":
            with delivery.path(self.form).open("rb") as made:
                shutil.copyfileobj(made, self.target, 1 << 20)
        return self.target.finish()


def write_formats(
    bucket: Bucket, contract: Contract, stored: StoredFile, rows: int, as_text: frozenset[str]
) -> list[File]:
    """Write the files of `delivery.also` beside the CSV file. Raises Inconsistent if one has other rows."""
    forms = contract.delivery.also
    if not forms:
        return []
    where = f"s3://{bucket.name}/{stored.key.rpartition('/')[0]}"
    with tempfile.TemporaryDirectory() as folder, translate_aws_errors(f"writing formats in {where}"):
        delivery = Delivery(bucket, contract, stored, rows, as_text, Path(folder))
        expected, parts = _write(delivery)
        return [_verify(form, delivery, parts[form], expected) for form in forms]


def _write(delivery: Delivery) -> tuple[str, dict[Format, list[Part]]]:
    """Return the fingerprint of the CSV file's rows, and the parts of each file that was made of them."""
    outputs = [_open_output(form, delivery) for form in delivery.contract.delivery.also]
    fingerprint = Fingerprint(delivery.contract)
    try:
        for table in delivery.read_csv():
            fingerprint.add(table)
            for output in outputs:
                output.writer.add(table)
    except BaseException:
        for output in outputs:
            output.writer.discard()
        raise
    return fingerprint.digest(), {output.form: output.finish(delivery) for output in outputs}


def _open_output(form: Format, delivery: Delivery) -> _Output:
    target = ObjectWriter(delivery.bucket, delivery.key(form), MEDIA_TYPES[form])
    match form:
        case "parquet":
            return _Output(form, parquet.ParquetWriter(target, delivery.contract), target)
        case "jsonl":
            return _Output(form, jsonl.JsonlWriter(target, delivery.contract), target)
        case "xlsx":
            from glue_jobs.delivery.formats.xlsx import XlsxWriter  # noqa: PLC0415 - few contracts need it

            writer = XlsxWriter(delivery.path(form), delivery.contract, delivery.rows, delivery.as_text)
            return _Output(form, writer, target)


def _verify(form: Format, delivery: Delivery, parts: list[Part], expected: str) -> File:
    """Read a file back, and compare its bytes with what was uploaded and its rows with the CSV file."""
    bucket = delivery.bucket
    key = bucket.key(delivery.key(form))
    body = CheckedBody(ObjectBody(bucket.s3, bucket.name, key, bucket.pause), parts)
    path = delivery.path(form)
    with path.open("wb") as file:
        shutil.copyfileobj(body, file, 1 << 20)
    sha256 = body.finish()
    found = Fingerprint(delivery.contract)
    for table in _READERS[form](path, delivery):
        found.add(table)
    if found.rows != delivery.rows or found.digest() != expected:
        raise Inconsistent("EXP-FORMAT-DIFFERS", f"the {_NAMES[form]} has other rows than the CSV file")
    path.unlink()
    return File(form, key, body.size, sha256, found.rows)


def _read_jsonl(path: Path, delivery: Delivery) -> Iterator[pa.Table]:
    try:
        with path.open("rb") as file:
            yield from jsonl.read(file, delivery.contract)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Inconsistent("EXP-CHECKSUM", f"the file can't be unpacked: {error}") from None


def _read_parquet(path: Path, delivery: Delivery) -> Iterator[pa.Table]:
    return parquet.read(path, delivery.contract)


def _read_xlsx(path: Path, delivery: Delivery) -> Iterator[pa.Table]:
    from glue_jobs.delivery.formats import xlsx_reader  # noqa: PLC0415 - few contracts need it

    return xlsx_reader.read(path, delivery.contract, delivery.as_text)


_READERS: Final[dict[Format, Callable[[Path, Delivery], Iterator[pa.Table]]]] = {
    "parquet": _read_parquet,
    "jsonl": _read_jsonl,
    "xlsx": _read_xlsx,
}
