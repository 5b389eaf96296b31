"""What the launcher (in .venv-aws) and those who start it (in .venv) agree on. Standard library only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
ACCOUNT: Final = "000000000000"
#: Not us-east-1: there S3 forgives a bucket without a location.
REGION: Final = "eu-west-1"
#: MiniStack knows this pair as the account's root, with and without IAM.
ACCESS_KEY_ID: Final = "test"
SECRET_ACCESS_KEY: Final = "test"  # noqa: S105  (the dummy pair that every local AWS uses)
#: Only these answer. Add one here when the work at hand needs it.
SERVICES: Final = (
    "s3", "glue", "secretsmanager", "sts", "iam", "dynamodb", "cloudformation", "lambda", "sns", "sqs", "monitoring",
)  # fmt: skip
#: How long the server may take to flush its state once it is told to stop, before its process group is killed.
STOP_GRACE_SECONDS: Final = 15.0

#: In which functions run.
LAMBDA_PYTHON: Final = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "python"
_REQUIREMENTS = Path(__file__).with_name("requirements.in")


def pinned_version() -> str:
    """The MiniStack that the amendments were written for: the pin in requirements.in."""
    match = re.search(r"^ministack==(\S+)$", _REQUIREMENTS.read_text(), re.MULTILINE)
    if match is None:
        raise ValueError(f"{_REQUIREMENTS.name} does not pin ministack. Write `ministack==<version>`")
    return match[1]
