"""The schedule fires, the job runs on real Spark, files are published once, and mails tell of it."""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import duckdb

from deployments.model import Export
from exports import contracts, cron
from exports.windows import Window, window_of
from rehearsal.check import NotProven, Proof, require
from rehearsal.harness import Harness, until

EXPORT: Final = "daily_trades"
_ENDED: Final = ("SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED")
_RUN_SECONDS: Final = 240.0
#: What the export's contract means, in words of its own: cents from pennies, hours of New York.
_INDEPENDENT: Final = """
SELECT symbol, side, hour, count(*), sum(quantity),
       sum(quantity::DECIMAL(18, 0) * price) / 100, min(price) / 100.0, max(price) / 100.0
FROM traded GROUP BY symbol, side, hour ORDER BY symbol, side, hour
"""


def first_window() -> Window:
    rule = contracts.load(EXPORT).window
    return window_of(rule.first, rule)


def subscriptions(stage: Harness) -> list[Proof]:
    """Nobody gets a mail before he has followed the link in the first one."""
    mails = [mail for mail in stage.worlds.ask_aws("GET", "/mail") if mail["kind"] == "confirmation"]
    wanted = {*_own(stage).recipients, *stage.ctx.deployment.alerts.engineers}
    require({mail["to"] for mail in mails} >= wanted, f"only {[mail['to'] for mail in mails]} were asked to confirm")
    for mail in mails:
        urllib.request.urlopen(mail["link"]).close()  # noqa: S310  (loopback)
    seen = f"{len(mails)} links followed, of {', '.join(sorted(wanted))}"
    return [Proof("recipients confirm their subscription", seen, {"mails": len(mails)})]


def published(stage: Harness) -> list[Proof]:
    window = first_window()
    run = _fire(stage, window)
    require(run["JobRunState"] == "SUCCEEDED", f"the job ended {run['JobRunState']}: {run.get('ErrorMessage')}")
    bucket, manifest = stage.output("data", "LakeBucketName"), _manifest(stage, window)
    files = {file["role"]: file["key"] for file in manifest["files"]}
    require(set(files) >= {"data", "datapackage", "report"}, f"only {sorted(files)} were published")
    for role in ("report", "datapackage"):
        require(stage.content(bucket, files[role]), f"the {role} is empty")
    delivered = [_cells(row) for row in stage.table(bucket, files["data"])]
    expected = _independently(stage, window)
    require(delivered, "the file has no row")
    require(
        delivered == expected, f"{len(delivered)} rows were delivered, {len(expected)} are right: {_first(delivered, expected)}"
    )
    stage.out.joinpath("report.html").write_bytes(stage.content(bucket, files["report"]))
    seen = f"{window.label}: {len(delivered)} rows, cell by cell as SQL over {manifest['rows']['events']['kept']} records"
    return [
        Proof("the schedule fires, and the job publishes what is right", seen, {"rows": len(delivered)}),
        _mail(stage, _own(stage).recipients, window.label, "the recipients get a mail"),
    ]


def not_twice(stage: Harness) -> list[Proof]:
    window = first_window()
    before, generation = _everything(stage), _manifest(stage, window)["generation"]
    run = _fire(stage, window)
    require(run["JobRunState"] == "SUCCEEDED", f"the job ended {run['JobRunState']}: {run.get('ErrorMessage')}")
    after = _everything(stage)
    require(after == before, f"a second run left {sorted(set(after) ^ set(before))}")
    require(_manifest(stage, window)["generation"] == generation, "a second run made another generation")
    return [Proof("a second firing publishes nothing twice", f"the same {len(before)} files, generation {generation}")]


def failure_told(stage: Harness) -> list[Proof]:
    """The job's role loses its table for a while, as if somebody had changed it by hand."""
    iam, role = stage.ctx.client("iam"), _role_of_job(stage)
    denied = {"Effect": "Deny", "Action": "glue:GetTable", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    iam.put_role_policy(RoleName=role, PolicyName="rehearsal", PolicyDocument=policy)
    try:
        run = _fire(stage, first_window())
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="rehearsal")
    require(run["JobRunState"] == "FAILED", f"the job ended {run['JobRunState']} without its source")
    engineers = stage.ctx.deployment.alerts.engineers
    return [_mail(stage, engineers, run["Id"], "a run that fails is told", also=run.get("ErrorMessage", ""))]


def _fire(stage: Harness, window: Window) -> dict[str, Any]:
    """What became of the run that the schedule starts, at its first time after the window."""
    own, job = _own(stage), _job(stage)
    due = cron.parse(own.cron, own.zone).after(window.end)
    require(due, f"{own.cron} never comes")
    known = {run["Id"] for run in _runs(stage, job)}
    asked = {**_schedule(stage, job), "at": due.isoformat() if due else ""}
    fired = stage.worlds.ask_aws("POST", "/schedules/fire", asked)
    started = [run for run in _runs(stage, job) if run["Id"] not in known]
    if not started:
        raise NotProven(f"the schedule started nothing: {fired.get('invocation')}")
    run_id = started[0]["Id"]
    return dict(until(lambda: _ended(stage, job, run_id), f"run {run_id} goes on", _RUN_SECONDS))


def _ended(stage: Harness, job: str, run_id: str) -> dict[str, Any] | None:
    run: dict[str, Any] = stage.ctx.client("glue").get_job_run(JobName=job, RunId=run_id)["JobRun"]
    return run if run["JobRunState"] in _ENDED else None


def _runs(stage: Harness, job: str) -> list[dict[str, Any]]:
    return list(stage.ctx.client("glue").get_job_runs(JobName=job)["JobRuns"])


def _job(stage: Harness) -> str:
    return stage.output("exports", "DailyTradesJobName")


def _role_of_job(stage: Harness) -> str:
    role: str = stage.ctx.client("glue").get_job(JobName=_job(stage))["Job"]["Role"]
    return role.rpartition("/")[2]


def _schedule(stage: Harness, job: str) -> dict[str, str]:
    scheduler, group = stage.ctx.client("scheduler"), stage.ctx.deployment.prefix
    for each in scheduler.list_schedules(GroupName=group)["Schedules"]:
        target = scheduler.get_schedule(GroupName=group, Name=each["Name"])["Target"]
        if json.loads(target.get("Input") or "{}").get("JobName") == job:
            return {"group": group, "name": each["Name"]}
    raise NotProven(f"no schedule of group {group} starts {job}")


def _own(stage: Harness) -> Export:
    return next(export for export in stage.ctx.deployment.exports if export.contract == EXPORT)


def _manifest(stage: Harness, window: Window) -> dict[str, Any]:
    key = f"exports/{EXPORT}/manifests/{window.label}.json"
    found: dict[str, Any] = json.loads(stage.content(stage.output("data", "LakeBucketName"), key))
    return found


def _everything(stage: Harness) -> list[str]:
    """Published data and manifests; each run leaves a record of its own."""
    bucket = stage.output("data", "LakeBucketName")
    return sorted(key for part in ("data", "manifests") for key in stage.objects(bucket, f"exports/{EXPORT}/{part}/"))


def _independently(stage: Harness, window: Window) -> list[tuple[str, ...]]:
    zone = ZoneInfo(contracts.load(EXPORT).window.zone)
    traded = [
        (value["symbol"], value["side"], moment.astimezone(zone).hour, value["quantity"], value["price"])
        for value, moment in _trades(stage)
        if window.start <= moment < window.end
    ]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE traded (symbol TEXT, side TEXT, hour INT, quantity INT, price INT)")
        connection.executemany("INSERT INTO traded VALUES (?, ?, ?, ?, ?)", traded)
        rows = connection.execute(_INDEPENDENT).fetchall()
    return [(*map(str, row[:5]), *(f"{amount:.2f}" for amount in row[5:])) for row in rows]


def _trades(stage: Harness) -> list[tuple[dict[str, Any], datetime]]:
    return [
        (record["value"], datetime.fromtimestamp(record["timestamp"] / 1000, UTC)) for record in stage.records("stock_trades")
    ]


def _cells(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row.values())


def _first(delivered: list[tuple[str, ...]], expected: list[tuple[str, ...]]) -> str:
    pairs = zip(delivered, expected, strict=False)
    return next((f"{one} instead of {other}" for one, other in pairs if one != other), "one has more rows")


def _mail(stage: Harness, recipients: list[str], about: str, claim: str, also: str = "") -> Proof:
    def come() -> list[dict[str, Any]]:
        mails = [mail for mail in stage.worlds.ask_aws("GET", "/mail") if mail["kind"] != "confirmation"]
        return [mail for mail in mails if mail["to"] in recipients and (about in mail["body"] or about in mail["subject"])]

    mails = until(come, f"no mail to {', '.join(recipients)} about {about} {also}".rstrip())
    return Proof(claim, f"to {mails[-1]['to']}: {mails[-1]['subject']}", {"mails": len(mails)})
