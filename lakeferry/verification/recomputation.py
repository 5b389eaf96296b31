"""Compute a published file a second time, from the snapshot of the table that it was made from, and compare
the rows.

The second computation is that of a rehearsal: Spark SQL that was written from the reference of contracts and
shares no code with the job. It runs on this machine, with the caller's rights.
"""

from __future__ import annotations

import subprocess
from typing import Final

import boto3

from glue_jobs.pseudonyms import fetch_key
from glue_jobs.store import connect
from lakeferry.error_translation import translate_aws_errors
from lakeferry.exports.deployed import DeployedExport
from lakeferry.verification import data_files, oracle
from lakeferry.verification.evidence import Answer, Asked, Finding
from lakeferry.verification.oracle import Question, TableSnapshot
from lakeferry.verification.windows import PublishedWindow

RECOMPUTED: Final = "a second computation from the same snapshot gives the same rows"
#: This machine computes and compares the rows in memory.
_MOST_ROWS: Final = 300_000
_MOST_EVENTS: Final = 20_000_000
#: For contracts that hash nothing.
_UNUSED_KEY: Final = bytes(32)


def check(published: PublishedWindow, *, is_wanted: bool) -> Finding:
    question = "Glue, S3: the snapshot of the table"
    if published.contract.hashed:
        question += "; Secrets Manager: the key of pseudonyms"
    asked = Asked(RECOMPUTED, published.about, question)
    if why := _explain_not_asked(published, is_wanted=is_wanted):
        return asked.not_asked(why)
    if not published.has_data:
        return asked.unknown("the data file was not read")
    if not published.is_of_contract:
        return asked.unknown("another version of the contract made the file than the one in this clone")
    return asked.look(lambda: _compare(published))


def _explain_not_asked(published: PublishedWindow, *, is_wanted: bool) -> str:
    if not is_wanted:
        return "--no-recompute was given"
    if "--tableflow-secret" in published.export.arguments:
        return "the table is in Confluent's storage, and only tables in Glue are read a second time"
    rows = (published.manifest or {}).get("rows") or {"rows": 0, "events": None}
    events = (rows["events"] or {}).get("in_table", 0)
    if rows["rows"] > _MOST_ROWS or events > _MOST_EVENTS:
        return (
            f"{rows['rows']:,} rows of {events:,} events are too many for this machine: "
            f"{_MOST_ROWS:,} and {_MOST_EVENTS:,} at most"
        )
    return ""


def _compare(published: PublishedWindow) -> Answer:
    """Raises CommandFailed if Spark isn't set up, and ExportError if the key can't be read."""
    manifest = published.manifest or {}
    database, _, table = str(manifest["source"]["table"]).rpartition(".")
    snapshot = TableSnapshot(database, table, int(manifest["source"]["snapshot_id"]))
    question = Question(published.contract.source.topic, "", [], [published], snapshot=snapshot)
    key = _UNUSED_KEY
    if published.contract.hashed:
        secret = published.export.arguments.get("--pseudonym-secret", "")
        current = fetch_key(connect(published.export.ctx.region), secret)
        if current.version != manifest["pseudonyms"]["key_version"]:
            return Answer(None, f"the key in {secret} was replaced after the file was made")
        key = current.value
    try:
        (answer,) = oracle.ask([question], key, _build_environment(published.export))
    except subprocess.TimeoutExpired as late:
        return Answer(None, f"the second computation has not ended after {late.timeout:.0f} s")
    if answer.problem:
        return Answer(None, f"snapshot {snapshot.snapshot_id} can't be read: {answer.problem}")
    expected = answer.files[published.contract.name]
    if expected.problems:
        return Answer(None, f"the second computation has no file: {'; '.join(expected.problems)}")
    published.data.seek(0)
    header, *rows = data_files.read_records(published.data.read(), published.contract.delivery)
    difference = data_files.find_difference(published.contract, header, rows, expected.rows, show_rows=False)
    return Answer(not difference, difference or f"{len(rows):,} rows of snapshot {snapshot.snapshot_id}")


def _build_environment(export: DeployedExport) -> dict[str, str]:
    """Return variables with the region and the caller's credentials, which Java may not find by itself."""
    variables = {"AWS_REGION": export.ctx.region, "AWS_DEFAULT_REGION": export.ctx.region}
    with translate_aws_errors("looking for AWS credentials"):
        found = boto3.session.Session().get_credentials()
        frozen = found.get_frozen_credentials() if found else None
    if frozen and frozen.access_key and frozen.secret_key:
        variables |= {"AWS_ACCESS_KEY_ID": frozen.access_key, "AWS_SECRET_ACCESS_KEY": frozen.secret_key}
        if frozen.token:
            variables["AWS_SESSION_TOKEN"] = frozen.token
    return variables
