"""Check the commands of an operator: what they print, what they refuse, and what stopping one with Ctrl-C
leaves.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from lakeferry.deployment import stacks
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.harness import Check, Harness, require, wait_until
from lambdas.snowflake import sql

_ADMINS_STATEMENT: Final = re.compile(r"ALTER USER [^;\n]+")
_READER: Final = "snowflake/reader"
_TABLE: Final = "stock_trades_with_totals"
_TABLEFLOW_SECONDS: Final = 120.0
#: Seconds of Confluent's clock: until trades flow, until Flink has polled, until Tableflow has committed.
_TRADES_FLOW: Final = (1300.0, 40.0, 310.0)
_SNOWFLAKE_REFRESH: Final = 120.0


def prepare(harness: Harness) -> list[Check]:
    """Run the commands before the first deployment, and what the admins of AWS and Snowflake do."""
    project = harness.project
    simulators = harness.simulators
    environments.make_deployer(simulators)
    before = project.file.read_text(encoding="utf-8")
    project.show("init", *_list_answers(harness))
    require(project.file.read_text(encoding="utf-8") == before, "init changed a file that has all answers")
    key = {
        "apiKey": simulators.confluent["cloud_api_key"],
        "apiSecret": simulators.confluent["cloud_api_secret"],
    }
    project.show("secrets set confluent", stdin=json.dumps(key))
    proposed = project.show("secrets set snowflake", "--generate", ends=None)
    (statement,) = _ADMINS_STATEMENT.findall(proposed)
    environments.open_admin(simulators).run(sql.Sql(statement))
    project.show("secrets set snowflake", "--generate")
    harness.cdk.bootstrap(lambda _: None)
    project.show("doctor")
    project.show("plan")
    return [Check("init, secrets, doctor and plan lead to a deployment", "six commands, without a question")]


def _list_answers(harness: Harness) -> list[str]:
    deployment = harness.ctx.deployment
    recipients = sorted({recipient for export in deployment.exports for recipient in export.recipients})
    answers = ["--yes"]
    answers += ["--recipients", ",".join(recipients)]
    answers += ["--engineers", ",".join(deployment.alerts.engineers)]
    if deployment.snowflake:
        answers += ["--snowflake", deployment.snowflake.account]
    return answers


def status(harness: Harness) -> list[Check]:
    """Print the status once trades are in the tables, for the tutorial.

    All that is wrong is that the trades are old.
    """
    for seconds in _TRADES_FLOW:
        harness.simulators.advance_confluent(seconds)
    harness.simulators.advance_snowflake(_SNOWFLAKE_REFRESH)
    harness.project.show("status", ends=1)
    details = harness.project.run("status", code=1)["details"]
    tables = details["tables"]
    wrong = set()
    hops = 0
    for table in tables:
        observations = {hop: value for hop, value in table.items() if isinstance(value, dict)}
        wrong |= {hop for hop, observation in observations.items() if observation["state"] != "ok"}
        hops += len(observations)
    require(wrong == {"topic"}, f"status finds {sorted(wrong)} wrong, and only the simulated topics are old")
    return [Check("status looks at every hop of every table", f"{len(tables)} tables, {hops} hops")]


def rotate(harness: Harness) -> list[Check]:
    """Runs after a rotation: rotate a key by hand, revoke the replaced one, and stop a rotation with
    Ctrl-C.
    """
    project = harness.project
    refused = {
        "rotate snowflake --now": (2, "ROTATE-NOT-CONFIRMED"),
        "rotate nosuch --now --yes": (2, "ROTATE-UNKNOWN"),
    }
    for words, (code, error) in refused.items():
        _require_error(project.run(words, code), error)
    again = project.run(f"rotate {_READER} --now --yes", code=1)
    _require_error(again, "ROTATE-FAILED")
    require(
        "ROT-IN-GRACE" in again["message"],
        f"a second rotation within the grace period says {again['message']}",
    )
    _revoke(harness)
    project.run(f"rotate {_READER} --now --yes")
    remaining = _revoke(harness)
    return [
        Check(
            "a key is rotated and revoked by hand",
            f"{_READER}: not within the grace period, then twice; one key is left",
        ),
        _check_interrupted_rotation(harness, remaining["secret"]),
    ]


def _revoke(harness: Harness) -> dict[str, Any]:
    """Revoke the replaced keys of Snowflake's reader, and return its secret with the keys that are left."""
    revoked = harness.project.run("rotate snowflake --revoke --yes")["revoked"]
    require(all(len(rotation["revoked"]) == 1 for rotation in revoked), f"revoked {revoked}")
    left: dict[str, Any]
    (left,) = harness.project.run("rotate snowflake")["secrets"]
    require(
        [key["id"] for key in left["keys"]] == [revoked[-1]["kept"]],
        f"after the revocation there are {left['keys']}",
    )
    return left


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
    return Check("an interrupted rotate claims no result", f"{name}: Ctrl-C, and the rotation ended in AWS")


def logs(harness: Harness) -> list[Check]:
    """Check the logs. Runs after a rotation, and after a run of the job that failed."""
    project = harness.project
    names = project.run("logs")["names"]
    require(names[:2] == ["daily_trades", "confluent"], f"logs lists {names}")
    (functions,) = project.run("logs rotation")["runs"]
    require(
        any('"message": "current"' in line["text"] for line in functions["lines"]),
        "no log line of a rotation's last step",
    )
    (job,) = project.run("logs daily_trades")["runs"]
    require(job["state"] == "FAILED", f"the newest run of daily_trades, which failed, is {job['state']}")
    return [
        Check(
            "logs finds what a name wrote", f"{len(names)} names; {len(functions['lines'])} lines of rotation"
        )
    ]


def repair(harness: Harness) -> list[Check]:
    """Delete a Tableflow topic at Confluent; `status --drift` reports it, and `deploy --repair` creates it
    again.
    """
    ctx = harness.ctx
    project = harness.project
    outputs = stacks.require_part(ctx, "confluent").outputs
    tableflow = ctx.confluent().tableflow(
        ctx.secrets.read_key(f"{ctx.deployment.prefix}/confluent/tableflow")
    )
    cluster = {"environment": outputs["EnvironmentId"], "spec.kafka_cluster": outputs["KafkaClusterId"]}
    path = f"/tableflow/v1/tableflow-topics/{_TABLE}"
    before = harness.simulators.confluent_objects()
    tableflow.delete(path, **cluster)
    harness.simulators.advance_confluent(_TABLEFLOW_SECONDS)
    require(tableflow.read(path, **cluster) is None, f"{_TABLE} was not deleted")
    drift = project.run("status --drift", code=1)["details"]
    (table,) = [entry for entry in drift["tables"] if entry["table"] == _TABLE]
    require(
        "deploy --repair" in table["tableflow"]["message"], f"status says {table['tableflow']['message']}"
    )
    (missing,) = [entry for entry in drift["drift"] if entry["system"] == "Confluent"]
    require(
        (missing["name"], missing["status"]) == ("StockTradesWithTotalsTable", "DELETED"),
        f"the drift is {missing}",
    )
    repaired = project.run("deploy --repair --yes")
    require(
        [change["logical_id"] for change in repaired["changes"]] == [missing["name"]],
        f"repair changed {repaired['changes']}",
    )
    require(repaired["losses"] == [], f"repair lost {repaired['losses']}")
    require(tableflow.read(path, **cluster) is not None, f"{_TABLE} was not created again")
    require(harness.simulators.confluent_objects() == before, "repair left other objects than before")
    require(project.run("plan --check")["changes"] == [], "after the repair, plan still shows changes")
    return [
        Check(
            "what somebody deleted is reported and created again",
            f"{_TABLE}, by status --drift and deploy --repair",
        )
    ]


def _require_error(document: dict[str, Any], code: str) -> None:
    require(document["code"] == code, f"{document['code']} instead of {code}: {document['message']}")
