"""IAM: the rules of policy documents, and sessions of roles that end.

- iam_statement_ids: Two statements of one policy with the same Sid are refused with MalformedPolicyDocument,
  "Statement IDs (SID) in a single policy must be unique."; stock accepts them. Source: IAM user guide, "IAM
  JSON policy elements: Sid".

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
from simulators.aws.hooks import Patch, import_ministack
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


PATCHES = (STATEMENT_IDS,)
