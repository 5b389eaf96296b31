"""Check the commands of an operator: what they print, what they refuse, and what stopping one with Ctrl-C
leaves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from config.deployments.confluent_model import Topic
from lakeferry.credentials import rotating_secrets
from lakeferry.credentials.rotating_secrets import RotatingSecret
from lakeferry.deployment import stacks
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require, wait_until
from lakeferry.verification.claims import Claim
from lambdas.snowflake import sql

_ADMINS_STATEMENT: Final = re.compile(r"ALTER USER [^;\n]+")
_REVOKED: Final = "a key is rotated and revoked by hand"
_INTERRUPTED: Final = "an interrupted rotate claims no result"
_REPAIRED: Final = "what somebody deleted is reported and created again"
_LOGS: Final = "logs finds what a name wrote"
#: In what `doctor` says of things that the vendor doesn't show to the key.
_UNSEEN: Final = re.compile(r"to this key|this key may not see it")
_TABLEFLOW_SECONDS: Final = 120.0
_SNOWFLAKE_REFRESH: Final = 120.0


def prepare(harness: Harness) -> list[Result]:
    """Run the commands before the first deployment, and what the admins of AWS and Snowflake do."""
    project = harness.project
    commands = ["doctor", "plan"]
    if harness.is_example:
        before = project.file.read_text(encoding="utf-8")
        project.show("init", *_list_answers(harness))
        require(
            project.file.read_text(encoding="utf-8") == before, "init changed a file that has all answers"
        )
        commands.append("init")
    if harness.deployment.confluent:
        project.show("secrets set confluent", stdin=json.dumps(harness.cloud_key))
        commands.append("secrets set confluent")
    if harness.deployment.snowflake and harness.deployment.uses_snowflake:
        environments.make_deployer(harness.simulators, harness.deployment.snowflake)
        proposed = project.show("secrets set snowflake", "--generate", ends=None)
        (statement,) = _ADMINS_STATEMENT.findall(proposed)
        environments.open_admin(harness.simulators).run(sql.Sql(statement))
        project.show("secrets set snowflake", "--generate")
        commands.append("secrets set snowflake")
    harness.cdk.bootstrap(lambda _: None)
    project.show("doctor")
    project.show("plan")
    return [
        Check(
            "init, secrets, doctor and plan lead to a deployment",
            f"{', '.join(sorted(commands))}, without a question",
        )
    ]


def _list_answers(harness: Harness) -> list[str]:
    deployment = harness.ctx.deployment
    recipients = sorted({recipient for export in deployment.exports for recipient in export.recipients})
    answers = ["--yes"]
    answers += ["--recipients", ",".join(recipients)]
    answers += ["--engineers", ",".join(deployment.alerts.engineers)]
    if deployment.snowflake:
        answers += ["--snowflake", deployment.snowflake.account]
    return answers


def status(harness: Harness) -> list[Result]:
    """Print the status once events are in the tables, for the tutorial.

    All that may be wrong is that the events are old.
    """
    harness.simulators.advance_snowflake(_SNOWFLAKE_REFRESH)
    code = _code_of_status(harness)
    harness.project.show("status", ends=code)
    answer = harness.project.run("status", code=code)
    tables = (answer["details"] if code else answer)["tables"]
    wrong = set()
    hops = 0
    for table in tables:
        observations = {hop: value for hop, value in table.items() if isinstance(value, dict)}
        wrong |= {hop for hop, observation in observations.items() if observation["state"] != "ok"}
        hops += len(observations)
    require(wrong <= {"topic"}, f"status finds {sorted(wrong)} wrong, and only the simulated topics are old")
    return [Check("status looks at every hop of every table", f"{len(tables)} tables, {hops} hops")]


def verify(harness: Harness) -> list[Result]:
    """Verify the deployment, and keep the evidence."""
    out = harness.out / "evidence"
    answer = harness.project.run(f"verify --out {out.resolve()}", code=None)
    require(answer["ok"] or answer["code"].startswith("VERIFY-"), f"verify ended with {answer}")
    document = answer if answer["ok"] else answer["details"]
    troubles = [
        f"{finding['about']}: {finding['claim']}: {finding['seen']}"
        for finding in document["findings"]
        if finding["outcome"] in ("failed", "unknown") and not _is_expected(harness, finding)
    ]
    require(not troubles, f"verify finds wrong or unknown: {'; '.join(troubles)}")
    counts = ", ".join(f"{count} {outcome}" for outcome, count in document["counts"].items())
    evidence = [Path(file).name for file in document["files"]]
    return [Check(Claim.VERIFIED, f"{counts}; {', '.join(evidence)}", document["counts"])]


def _is_expected(harness: Harness, finding: Mapping[str, str]) -> bool:
    """Return whether it is that the simulated events are old, as in `status`, or that the key of a team which
    has no cluster of its own doesn't see something.
    """
    is_of_topic = finding["claim"] == Claim.STATUS and finding["about"].endswith(", topic")
    is_old = is_of_topic and _code_of_status(harness) != 0
    is_unseen = finding["outcome"] == "unknown" and _UNSEEN.search(finding["seen"]) is not None
    return is_old or (is_unseen and harness.deployment.uses_existing_cluster)


def _code_of_status(harness: Harness) -> int:
    """Return the exit code of `status` when nothing is wrong but that the simulated events are old."""
    is_shown_by_confluent = harness.deployment.confluent and not harness.deployment.uses_existing_cluster
    return 1 if is_shown_by_confluent and harness.deployment.tables else 0


def rotate(harness: Harness) -> list[Result]:
    """Runs after a rotation: rotate a key by hand, revoke the replaced one, and stop a rotation with
    Ctrl-C.
    """
    project = harness.project
    secret = _choose_secret(harness)
    if secret is None:
        why = "the deployment has no key that rotates"
        return [NotApplicable(_REVOKED, why), NotApplicable(_INTERRUPTED, why)]
    refused = {
        f"rotate {secret.vendor} --now": (2, "ROTATE-NOT-CONFIRMED"),
        "rotate nosuch --now --yes": (2, "ROTATE-UNKNOWN"),
    }
    for words, (code, error) in refused.items():
        _require_error(project.run(words, code=code), error)
    within_grace = "again within the grace period"
    if secret.vendor == "snowflake":  # a user has two keys only
        again = project.run(f"rotate {secret.name} --now --yes", code=1)
        _require_error(again, "ROTATE-FAILED")
        require(
            "ROT-IN-GRACE" in again["message"],
            f"a second rotation within the grace period says {again['message']}",
        )
        within_grace = "not within the grace period"
    else:
        project.run(f"rotate {secret.name} --now --yes")
    _revoke(harness, secret)
    project.run(f"rotate {secret.name} --now --yes")
    _revoke(harness, secret)
    return [
        Check(_REVOKED, f"{secret.name}: {within_grace}, then twice; one key is left"),
        _check_interrupted_rotation(harness, secret.name),
    ]


def _choose_secret(harness: Harness) -> RotatingSecret | None:
    """Return a key that rotates, the one of Snowflake's reader if there is one."""
    if harness.deployment.confluent is None:
        return None
    rotating = rotating_secrets.load(harness.ctx)
    return max(rotating, key=lambda secret: secret.vendor == "snowflake", default=None)


def _revoke(harness: Harness, secret: RotatingSecret) -> None:
    """Revoke the replaced keys, and check that one is left."""
    revoked = harness.project.run(f"rotate {secret.name} --revoke --yes")["revoked"]
    require(all(rotation["revoked"] for rotation in revoked), f"revoked {revoked}")
    (left,) = harness.project.run(f"rotate {secret.name}")["secrets"]
    require(
        [key["id"] for key in left["keys"]] == [revoked[-1]["kept"]],
        f"after the revocation there are {left['keys']}",
    )


def _check_interrupted_rotation(harness: Harness, name: str) -> Check:
    secrets = harness.ctx.client("secretsmanager")

    def labels() -> dict[str, list[str]]:
        versions: dict[str, list[str]] = secrets.describe_secret(SecretId=name)["VersionIdsToStages"]
        return versions

    before = labels()
    stopped = harness.project.interrupt(
        f"rotate {name} --now --yes", lambda: labels().keys() != before.keys(), code=6
    )
    _require_error(stopped, "ROTATE-STOPPED")
    require("continues in AWS" in stopped["message"], f"the interrupted command claims {stopped['message']}")
    (new,) = labels().keys() - before.keys()
    wait_until(
        lambda: "AWSCURRENT" in labels()[new], f"the interrupted rotation of {name} did not end in AWS"
    )
    return Check(_INTERRUPTED, f"{name}: Ctrl-C, and the rotation ended in AWS")


def logs(harness: Harness) -> list[Result]:
    """Check the logs. Runs after a rotation, and after a run of the first job that failed."""
    project = harness.project
    names = project.run("logs")["names"]
    exports = {export.contract for export in harness.deployment.exports}
    require(exports <= set(names), f"logs lists {names}, and the exports are {sorted(exports)}")
    seen = [f"{len(names)} names"]
    if _choose_secret(harness):
        (functions,) = project.run("logs rotation")["runs"]
        require(
            any('"message": "current"' in line["text"] for line in functions["lines"]),
            "no log line of a rotation's last step",
        )
        seen.append(f"{len(functions['lines'])} lines of rotation")
    if harness.plan.dues:
        failed = harness.plan.dues[0].export.contract
        # The newest run may be a retry of the failed one.
        runs = project.run(f"logs {failed} --last 3")["runs"]
        states = [run["state"] for run in runs]
        require("FAILED" in states, f"the newest runs of {failed}, one of which failed, are {states}")
        lines = runs[states.index("FAILED")]["lines"]
        require(lines, f"the log of the failed run of {failed} has no line")
        seen.append(f"{len(lines)} lines of the failed run of {failed}")
    return [Check(_LOGS, "; ".join(seen))]


def repair(harness: Harness) -> list[Result]:
    """Delete a Tableflow topic at Confluent; `status --drift` reports it, and `deploy --repair` creates it
    again.
    """
    ctx = harness.ctx
    project = harness.project
    topic = harness.deployment.tables[0]
    outputs = stacks.require_part(ctx, "confluent").outputs
    tableflow = ctx.confluent().tableflow(ctx.secrets.read_key(ctx.confluent_secret("tableflow")))
    cluster = {"environment": outputs["EnvironmentId"], "spec.kafka_cluster": harness.cluster_id}
    path = f"/tableflow/v1/tableflow-topics/{topic.name}"
    before = harness.simulators.confluent_objects()
    tableflow.delete(path, **cluster)
    harness.simulators.advance_confluent(_TABLEFLOW_SECONDS)
    require(tableflow.read(path, **cluster) is None, f"{topic.name} was not deleted")
    missing = _find_drift(harness, topic)
    repaired = project.run("deploy --repair --yes")
    require(
        [change["logical_id"] for change in repaired["changes"]] == [missing["name"]],
        f"repair changed {repaired['changes']}",
    )
    require(repaired["losses"] == [], f"repair lost {repaired['losses']}")
    require(tableflow.read(path, **cluster) is not None, f"{topic.name} was not created again")
    require(harness.simulators.confluent_objects() == before, "repair left other objects than before")
    require(project.run("plan --check")["changes"] == [], "after the repair, plan still shows changes")
    return [Check(_REPAIRED, f"the table of {topic.name}, by status --drift and deploy --repair")]


def _find_drift(harness: Harness, topic: Topic) -> dict[str, Any]:
    """Return what `status --drift` says of the table that is missing at Confluent."""
    drift = harness.project.run("status --drift", code=1)["details"]
    (table,) = [entry for entry in drift["tables"] if entry["table"] in (topic.name, topic.table)]
    if "tableflow" in table:
        message = table["tableflow"]["message"]
        require("deploy --repair" in message, f"status says {message}")
    (missing,) = [entry for entry in drift["drift"] if entry["system"] == "Confluent"]
    require(missing["status"] == "DELETED", f"the drift is {missing}")
    found: dict[str, Any] = missing
    return found


def _require_error(document: dict[str, Any], code: str) -> None:
    require(document["code"] == code, f"{document['code']} instead of {code}: {document['message']}")
