"""IAM: the rules of policy documents, and sessions of roles that end.

- iam_statement_ids: Two statements of one policy with the same Sid are refused with MalformedPolicyDocument,
  "Statement IDs (SID) in a single policy must be unique."; stock accepts them. Source: IAM user guide, "IAM
  JSON policy elements: Sid".

- iam_principal_arn: aws:PrincipalArn of a role's session is the ARN of the role, with its path; stock has the
  ARN of the session, which no policy names. Source: IAM user guide, "AWS global condition context keys".
- iam_simulation: SimulatePrincipalPolicy finds roles and users with a path; stock looks for the path in their
  names, and answers that they may do nothing. Source: IAM API reference, SimulatePrincipalPolicy.

Less strict than AWS: SimulatePrincipalPolicy leaves out permissions boundaries.

Beyond AWS: POST sessions/end {"role": "confluent-reader-*"} under /_simulator ends the sessions of matching
roles, as if their duration had passed, and returns their number. Only an embedded AWS with `iam` refuses them
then.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and iam"`
"""

from __future__ import annotations

import json
import time
from fnmatch import fnmatchcase
from typing import Any

from simulators.aws import controls
from simulators.aws.hooks import Answer, Original, Patch, import_ministack
from simulators.core import control

STATEMENT_IDS = Patch("iam_statement_ids")


@STATEMENT_IDS.replaces("ministack.core.iam_evaluator", "validate_policy_document", "doc")
def validate(original: Any, doc: Any) -> str | None:
    problem: str | None = original(doc)
    if problem:
        return problem
    policy = json.loads(doc) if isinstance(doc, str) else doc
    statements = policy.get("Statement", [])
    statement_list = statements if isinstance(statements, list) else [statements]
    names = [statement["Sid"] for statement in statement_list if statement.get("Sid")]
    return "Statement IDs (SID) in a single policy must be unique." if len(names) != len(set(names)) else None


@controls.register("POST", "/sessions/end")
def end_sessions(request: control.Request) -> control.Response:
    pattern = request.read_document()["role"]
    sessions = import_ministack("services.sts")._sessions.values()
    ended = [session for session in sessions if fnmatchcase(_read_role(session), pattern)]
    for session in ended:
        session["Expiration"] = time.time() - 1
    return control.build_json_response({"ended": len(ended)})


def _read_role(session: dict[str, Any]) -> str:
    """Return the name of the session's role, from arn:aws:sts::…:assumed-role/role/session."""
    _, _, role_and_session = str(session.get("Arn", "")).partition(":assumed-role/")
    return role_and_session.partition("/")[0]


PRINCIPAL_ARN = Patch("iam_principal_arn")


@PRINCIPAL_ARN.replaces("ministack.core.iam_evaluator", "_resolve_condition_key", "key ctx")
def resolve_condition_key(original: Any, key: str, ctx: Any) -> Any:
    value = original(key, ctx)
    if key.lower() != "aws:principalarn" or ":assumed-role/" not in str(value):
        return value
    role = import_ministack("services.iam")._roles.get(str(value).split("/")[1])
    return role["Arn"] if role else value


SIMULATION = Patch("iam_simulation")


@SIMULATION.replaces_entry("ministack.services.iam", "_IAM_HANDLERS", "SimulatePrincipalPolicy")
def simulate_principal_policy(original: Original, p: dict[str, Any]) -> Answer:
    arn = import_ministack("services.iam")._p(p, "PolicySourceArn")
    prefix, _, resource = arn.rpartition(":")
    kind, _, path_and_name = resource.partition("/")
    arn_without_path = f"{prefix}:{kind}/{path_and_name.rpartition('/')[2]}"
    return original({**p, "PolicySourceArn": [arn_without_path]})


PATCHES = (
    SIMULATION,
    STATEMENT_IDS,
    PRINCIPAL_ARN,
)
