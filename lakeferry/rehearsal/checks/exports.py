"""Check exports: the schedule fires, the job runs on real Spark, files are published once, and mails announce
it.
"""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import duckdb

from config.deployments.model import Export
from config.exports import contracts, cron
from config.exports.windows import Window, find_window
from lakeferry.rehearsal.harness import Check, CheckFailed, Harness, require, wait_until

EXPORT: Final = "daily_trades"
_ENDED: Final = ("SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED")
_RUN_SECONDS: Final = 240.0
#: What the export's contract defines, written independently: dollars from cents, hours of New York.
_EXPECTED: Final = """
SELECT symbol, side, hour, count(*), sum(quantity),
       sum(quantity::DECIMAL(18, 0) * price) / 100, min(price) / 100.0, max(price) / 100.0
FROM traded GROUP BY symbol, side, hour ORDER BY symbol, side, hour
"""


def first_window() -> Window:
    rule = contracts.load(EXPORT).window
    return find_window(rule.first, rule)


def subscriptions(harness: Harness) -> list[Check]:
    """Confirm the subscription of every recipient by the link in the first mail."""
    mails = [mail for mail in harness.simulators.ask_aws("GET", "/mail") if mail["kind"] == "confirmation"]
    expected = {*_export(harness).recipients, *harness.ctx.deployment.alerts.engineers}
    require(
        {mail["to"] for mail in mails} >= expected,
        f"only {[mail['to'] for mail in mails]} were asked to confirm",
    )
    for mail in mails:
        urllib.request.urlopen(mail["link"]).close()  # noqa: S310  (loopback)
    result = f"{len(mails)} links followed, of {', '.join(sorted(expected))}"
    return [Check("recipients confirm their subscription", result, {"mails": len(mails)})]


def published(harness: Harness) -> list[Check]:
    window = first_window()
    run = _run_schedule(harness, window)
    require(
        run["JobRunState"] == "SUCCEEDED", f"the job ended {run['JobRunState']}: {run.get('ErrorMessage')}"
    )
    bucket = harness.output("data", "LakeBucketName")
    manifest = _read_manifest(harness, window)
    files = {file["role"]: file["key"] for file in manifest["files"]}
    require(set(files) >= {"data", "datapackage", "report"}, f"only {sorted(files)} were published")
    for role in ("report", "datapackage"):
        require(harness.content(bucket, files[role]), f"the {role} is empty")
    delivered = [tuple(row.values()) for row in harness.table(bucket, files["data"])]
    expected = _compute_expected_rows(harness, window)
    require(delivered, "the file has no row")
    difference = _find_first_difference(delivered, expected)
    require(
        delivered == expected,
        f"{len(delivered)} rows were delivered, {len(expected)} were expected: {difference}",
    )
    harness.out.joinpath("report.html").write_bytes(harness.content(bucket, files["report"]))
    result = (
        f"{window.label}: {len(delivered)} rows, cell by cell as SQL over "
        f"{manifest['rows']['events']['kept']} records"
    )
    return [
        Check("the schedule fires, and the job publishes the right rows", result, {"rows": len(delivered)}),
        _mail(harness, _export(harness).recipients, window.label, "the recipients get a mail"),
    ]


def not_twice(harness: Harness) -> list[Check]:
    window = first_window()
    before = _list_published_keys(harness)
    generation = _read_manifest(harness, window)["generation"]
    run = _run_schedule(harness, window)
    require(
        run["JobRunState"] == "SUCCEEDED", f"the job ended {run['JobRunState']}: {run.get('ErrorMessage')}"
    )
    after = _list_published_keys(harness)
    require(after == before, f"a second run left {sorted(set(after) ^ set(before))}")
    require(
        _read_manifest(harness, window)["generation"] == generation, "a second run made another generation"
    )
    return [
        Check(
            "a second firing publishes nothing twice",
            f"the same {len(before)} files, generation {generation}",
        )
    ]


def failure_is_mailed(harness: Harness) -> list[Check]:
    """Deny the job's role access to its table for one run, as a manual change would."""
    iam = harness.ctx.client("iam")
    job = harness.ctx.client("glue").get_job(JobName=_find_job(harness))["Job"]
    role = job["Role"].rpartition("/")[2]
    denied = {"Effect": "Deny", "Action": "glue:GetTable", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    iam.put_role_policy(RoleName=role, PolicyName="rehearsal", PolicyDocument=policy)
    try:
        run = _run_schedule(harness, first_window())
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="rehearsal")
    require(run["JobRunState"] == "FAILED", f"the job ended {run['JobRunState']} without its source")
    engineers = harness.ctx.deployment.alerts.engineers
    return [
        _mail(
            harness,
            engineers,
            run["Id"],
            "a failed run is reported by mail",
            also=run.get("ErrorMessage", ""),
        )
    ]


def _run_schedule(harness: Harness, window: Window) -> dict[str, Any]:
    """Fire the schedule at its first time after the window and return the job run when it has ended."""
    export = _export(harness)
    job = _find_job(harness)
    due = cron.parse(export.cron, export.zone).after(window.end)
    require(due, f"{export.cron} never fires")
    known_run_ids = {run["Id"] for run in _list_runs(harness, job)}
    request = {**_schedule(harness, job), "at": due.isoformat() if due else ""}
    fired = harness.simulators.ask_aws("POST", "/schedules/fire", request)
    started = [run for run in _list_runs(harness, job) if run["Id"] not in known_run_ids]
    if not started:
        raise CheckFailed(f"the schedule started nothing: {fired.get('invocation')}")
    run_id = started[0]["Id"]
    return dict(
        wait_until(lambda: _find_ended_run(harness, job, run_id), f"run {run_id} has not ended", _RUN_SECONDS)
    )


def _find_ended_run(harness: Harness, job: str, run_id: str) -> dict[str, Any] | None:
    run: dict[str, Any] = harness.ctx.client("glue").get_job_run(JobName=job, RunId=run_id)["JobRun"]
    return run if run["JobRunState"] in _ENDED else None


def _list_runs(harness: Harness, job: str) -> list[dict[str, Any]]:
    return list(harness.ctx.client("glue").get_job_runs(JobName=job)["JobRuns"])


def _find_job(harness: Harness) -> str:
    return harness.output("exports", "DailyTradesJobName")


def _schedule(harness: Harness, job: str) -> dict[str, str]:
    scheduler = harness.ctx.client("scheduler")
    group = harness.ctx.deployment.prefix
    for schedule in scheduler.list_schedules(GroupName=group)["Schedules"]:
        target = scheduler.get_schedule(GroupName=group, Name=schedule["Name"])["Target"]
        if json.loads(target.get("Input") or "{}").get("JobName") == job:
            return {"group": group, "name": schedule["Name"]}
    raise CheckFailed(f"no schedule of group {group} starts {job}")


def _export(harness: Harness) -> Export:
    return next(export for export in harness.ctx.deployment.exports if export.contract == EXPORT)


def _read_manifest(harness: Harness, window: Window) -> dict[str, Any]:
    """Return the window's manifest. Raises CheckFailed with the reasons of the last run if there is none."""
    bucket = harness.output("data", "LakeBucketName")
    key = f"exports/{EXPORT}/manifests/{window.label}.json"
    if not harness.objects(bucket, key):
        record = json.loads(harness.content(bucket, max(harness.objects(bucket, f"exports/{EXPORT}/runs/"))))
        windows = [
            f"{window['window']} {window['state']}: {window['reason']}" for window in record["windows"]
        ]
        raise CheckFailed(
            f"{window.label} was not published; the run says: {'; '.join(windows) or record['reason']}"
        )
    manifest: dict[str, Any] = json.loads(harness.content(bucket, key))
    return manifest


def _list_published_keys(harness: Harness) -> list[str]:
    """Return the keys of data and manifests, without the record that each run writes."""
    bucket = harness.output("data", "LakeBucketName")
    data = harness.objects(bucket, f"exports/{EXPORT}/data/")
    manifests = harness.objects(bucket, f"exports/{EXPORT}/manifests/")
    return sorted([*data, *manifests])


def _compute_expected_rows(harness: Harness, window: Window) -> list[tuple[str, ...]]:
    zone = ZoneInfo(contracts.load(EXPORT).window.zone)
    traded = []
    for record in harness.records("stock_trades"):
        trade = record["value"]
        moment = datetime.fromtimestamp(record["timestamp"] / 1000, UTC)
        if window.start <= moment < window.end:
            hour = moment.astimezone(zone).hour
            traded.append((trade["symbol"], trade["side"], hour, trade["quantity"], trade["price"]))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE traded (symbol TEXT, side TEXT, hour INT, quantity INT, price INT)")
        connection.executemany("INSERT INTO traded VALUES (?, ?, ?, ?, ?)", traded)
        rows = connection.execute(_EXPECTED).fetchall()
    expected = []
    for row in rows:
        amounts = [f"{amount:.2f}" for amount in row[5:]]
        expected.append((*map(str, row[:5]), *amounts))
    return expected


def _find_first_difference(delivered: list[tuple[str, ...]], expected: list[tuple[str, ...]]) -> str:
    pairs = zip(delivered, expected, strict=False)
    return next(
        (f"{row} instead of {expected_row}" for row, expected_row in pairs if row != expected_row),
        "one has more rows",
    )


def _mail(harness: Harness, recipients: list[str], about: str, claim: str, also: str = "") -> Check:
    def matching() -> list[dict[str, Any]]:
        mails = [
            mail for mail in harness.simulators.ask_aws("GET", "/mail") if mail["kind"] != "confirmation"
        ]
        return [
            mail
            for mail in mails
            if mail["to"] in recipients and (about in mail["body"] or about in mail["subject"])
        ]

    mails = wait_until(matching, f"no mail to {', '.join(recipients)} about {about} {also}".rstrip())
    return Check(claim, f"to {mails[-1]['to']}: {mails[-1]['subject']}", {"mails": len(mails)})
