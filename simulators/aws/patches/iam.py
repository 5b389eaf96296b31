"""IAM: the rules of policy documents.

- iam_statement_ids: Two statements of one policy with the same Sid are refused with MalformedPolicyDocument,
  "Statement IDs (SID) in a single policy must be unique."; stock accepts them. Source: IAM user guide, "IAM
  JSON policy elements: Sid".

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and iam"`
"""

from __future__ import annotations

import json
from typing import Any

from simulators.aws.hooks import Patch

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


PATCHES = (STATEMENT_IDS,)
