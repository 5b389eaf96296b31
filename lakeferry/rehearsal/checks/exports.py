"""Check exports: the schedule fires, the job runs on real Spark, files are published once, and mails announce
it.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any, Final

from config.deployments.confluent_model import Topic
from config.deployments.export_model import Export
from config.deployments.model import to_pascal_case
from lakeferry.local import query
from lakeferry.local.target import ExportTarget
from lakeferry.rehearsal.harness import (
    Check,
    CheckFailed,
    Harness,
    NotApplicable,
    Result,
    require,
    wait_until,
)
from lakeferry.rehearsal.subject import Due
from lakeferry.verification import data_files, oracle
from lakeferry.verification.exports import find_schedule
from lakeferry.verification.oracle import ExpectedFile, Question

_ENDED: Final = ("SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED")
_RUN_SECONDS: Final = 300.0
#: For contracts that hash nothing.
_UNUSED_KEY: Final = bytes(32)
_PUBLISHED: Final = "the schedule fires, and the job publishes the right rows"
_MAIL: Final = "the recipients get a mail"


def subscriptions(harness: Harness) -> list[Result]:
    """Confirm the subscription of every recipient by the link in the first mail."""
    mails = [mail for mail in harness.simulators.ask_aws("GET", "/mail") if mail["kind"] == "confirmation"]
    expected = set(harness.deployment.alerts.engineers)
    for export in harness.deployment.sns_exports:
        expected |= set(export.recipients)
    require(
        {mail["to"] for mail in mails} >= expected,
        f"only {[mail['to'] for mail in mails]} were asked to confirm",
    )
    for mail in mails:
        urllib.request.urlopen(mail["link"]).close()  # noqa: S310  (loopback)
    result = f"{len(mails)} links followed, of {', '.join(sorted(expected))}"
    return [Check("recipients confirm their subscription", result, {"mails": len(mails)})]


def published(harness: Harness) -> list[Result]:
    """Let each export publish its first window, and compare the file with what was produced."""
    expected = _compute_expected(harness)
    results: list[Result] = []
    for due in harness.plan.dues:
        results += _publish(harness, due, expected[due.export.contract])
    return results


def _compute_expected(harness: Harness) -> dict[str, ExpectedFile]:
    """Return what each export should have, by its contract's name."""
    questions = []
    topics = {topic.name: topic for topic in harness.deployment.topics}
    for name in dict.fromkeys(due.contract.source.topic for due in harness.plan.dues):
        topic = harness.read_topic(name)
        dues = [due for due in harness.plan.dues if due.contract.source.topic == name]
        records = topic.records
        if topics[name].statement and topics[name] in harness.deployment.tables_in_glue:
            ends = _read_ends(harness, topics[name])
            records = [record for record in records if record.offset <= ends.get(record.partition, -1)]
        if records:
            questions.append(Question(name, topic.schema, records, dues))
    found: dict[str, ExpectedFile] = {}
    for answer in oracle.ask(questions, _read_pseudonym_key(harness)):
        found |= answer.files
    nothing = ExpectedFile([], [])
    return {due.export.contract: found.get(due.export.contract, nothing) for due in harness.plan.dues}


def _read_ends(harness: Harness, topic: Topic) -> dict[int, int]:
    """Return the greatest offset that the table in Glue has of each partition.

    A topic that Datagen or a statement goes on writing has records that no commit has yet.
    """
    lake = ExportTarget(bucket=harness.output("data", "LakeBucketName"), database=harness.database)
    scheme = topic.tableflow.metadata_columns if topic.tableflow else "DEFAULT"
    prefix = "$$" if scheme == "DEFAULT" else "cflt_metadata_"
    statement = f'SELECT "{prefix}partition", max("{prefix}offset") FROM "{topic.table}" GROUP BY 1'  # noqa: S608
    return {int(partition): int(end) for partition, end in query.query(lake, statement).rows}


def _read_pseudonym_key(harness: Harness) -> bytes:
    """Return the key of pseudonyms, which only the jobs get that need it."""
    glue = harness.ctx.client("glue")
    for due in harness.plan.dues:
        job = glue.get_job(JobName=_find_job(harness, due.export))["Job"]
        if name := job["DefaultArguments"].get("--pseudonym-secret"):
            return base64.b64decode(harness.secret(name)["key"])
    return _UNUSED_KEY


def _publish(harness: Harness, due: Due, expected: ExpectedFile) -> list[Result]:
    name = due.export.contract
    if not harness.read_topic(due.contract.source.topic).records:
        why = f"topic {due.contract.source.topic} has no record in the time that is rehearsed"
        return [NotApplicable(f"{name} publishes the right rows", why)]
    require(not expected.problems, f"{name} would not be published: {'; '.join(expected.problems)}")
    run = _run_schedule(harness, due)
    require(
        run["JobRunState"] == "SUCCEEDED", f"the job ended {run['JobRunState']}: {run.get('ErrorMessage')}"
    )
    if not expected.rows and due.contract.window.on_empty != "publish":
        why = f"{due.window.label} of {name} has no row, and the contract then publishes nothing"
        return [NotApplicable(f"{name} publishes the right rows", why)]
    bucket = harness.output("data", "LakeBucketName")
    manifest = _read_manifest(harness, due)
    require(manifest["generation"] == 1, f"{due.window.label} has generation {manifest['generation']}")
    files = {file["role"]: file["key"] for file in manifest["files"]}
    due_roles = {"data", "datapackage", "report", *due.contract.delivery.also}
    require(set(files) >= due_roles, f"only {sorted(files)} were published")
    for role in ("report", "datapackage"):
        require(harness.content(bucket, files[role]), f"the {role} is empty")
    content = harness.content(bucket, files["data"])
    header, *delivered = data_files.read_records(content, due.contract.delivery)
    difference = data_files.find_difference(due.contract, header, delivered, expected.rows, show_rows=True)
    require(not difference, difference)
    harness.out.joinpath("report.html").write_bytes(harness.content(bucket, files["report"]))
    kept = manifest["rows"]["events"]["kept"]
    result = f"{name} {due.window.label}: {len(delivered)} rows, cell by cell as SQL over {kept} records"
    results: list[Result] = [Check(_PUBLISHED, result, {"rows": len(delivered)})]
    if due.export.recipients:
        results.append(_mail(harness, due.export.recipients, due.window.label, _MAIL))
    else:
        results.append(NotApplicable(_MAIL, f"{name} has no recipients"))
    return results


def not_twice(harness: Harness) -> list[Result]:
    due = _choose_due(harness)
    claim = "a second firing publishes nothing twice"
    if due is None:
        return [NotApplicable(claim, "no export has published a file")]
    before = _list_published_keys(harness, due)
    generation = _read_manifest(harness, due)["generation"]
    run = _run_schedule(harness, due)
    require(
        run["JobRunState"] == "SUCCEEDED", f"the job ended {run['JobRunState']}: {run.get('ErrorMessage')}"
    )
    after = _list_published_keys(harness, due)
    require(after == before, f"a second run left {sorted(set(after) ^ set(before))}")
    require(_read_manifest(harness, due)["generation"] == generation, "a second run made another generation")
    return [Check(claim, f"the same {len(before)} files, generation {generation}")]


def _choose_due(harness: Harness) -> Due | None:
    """Return the first export that has published its window."""
    return next((due for due in harness.plan.dues if _list_manifests(harness, due)), None)


def failure_is_mailed(harness: Harness) -> list[Result]:
    """Deny the job's role what it needs to find its table for one run, as a manual change would."""
    due = harness.plan.dues[0]
    managed = {topic.name for topic in harness.deployment.managed_tables}
    action = "secretsmanager:GetSecretValue" if due.contract.source.topic in managed else "glue:GetTable"
    iam = harness.ctx.client("iam")
    job = harness.ctx.client("glue").get_job(JobName=_find_job(harness, due.export))["Job"]
    role = job["Role"].rpartition("/")[2]
    denied = {"Effect": "Deny", "Action": action, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    iam.put_role_policy(RoleName=role, PolicyName="rehearsal", PolicyDocument=policy)
    try:
        run = _run_schedule(harness, due)
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="rehearsal")
    require(run["JobRunState"] == "FAILED", f"the job ended {run['JobRunState']} without its source")
    return [
        _mail(
            harness,
            harness.deployment.alerts.engineers,
            run["Id"],
            "a failed run is reported by mail",
            also=run.get("ErrorMessage", ""),
        )
    ]


def _run_schedule(harness: Harness, due: Due) -> dict[str, Any]:
    """Fire the schedule at its first time after the window and return the job run when it has ended."""
    job = _find_job(harness, due.export)
    known_run_ids = {run["Id"] for run in _list_runs(harness, job)}
    schedule = find_schedule(harness.ctx, job)
    if schedule is None:
        raise CheckFailed(f"no schedule of group {harness.deployment.prefix} starts {job}")
    request = {"group": schedule["GroupName"], "name": schedule["Name"], "at": due.time.isoformat()}
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


def _find_job(harness: Harness, export: Export) -> str:
    return harness.output("exports", f"{to_pascal_case(export.contract)}JobName")


def _list_manifests(harness: Harness, due: Due) -> list[str]:
    bucket = harness.output("data", "LakeBucketName")
    return harness.objects(bucket, f"exports/{due.export.contract}/manifests/{due.window.label}.json")


def _read_manifest(harness: Harness, due: Due) -> dict[str, Any]:
    """Return the window's manifest. Raises CheckFailed with the reasons of the last run if there is none."""
    bucket = harness.output("data", "LakeBucketName")
    prefix = f"exports/{due.export.contract}"
    if not _list_manifests(harness, due):
        record = json.loads(harness.content(bucket, max(harness.objects(bucket, f"{prefix}/runs/"))))
        windows = [
            f"{window['window']} {window['state']}: {window['reason']}" for window in record["windows"]
        ]
        raise CheckFailed(
            f"{due.window.label} of {due.export.contract} was not published; the run says: "
            f"{'; '.join(windows) or record['reason']}"
        )
    manifest: dict[str, Any] = json.loads(
        harness.content(bucket, f"{prefix}/manifests/{due.window.label}.json")
    )
    return manifest


def _list_published_keys(harness: Harness, due: Due) -> list[str]:
    """Return the keys of data and manifests, without the record that each run writes."""
    bucket = harness.output("data", "LakeBucketName")
    data = harness.objects(bucket, f"exports/{due.export.contract}/data/")
    manifests = harness.objects(bucket, f"exports/{due.export.contract}/manifests/")
    return sorted([*data, *manifests])


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
