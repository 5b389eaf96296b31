"""What the launcher (in .venv-aws) and those who start it (in .venv) agree on. Standard library only."""

from __future__ import annotations

import os
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
    "athena", "budgets", "ecr", "events", "kms", "logs", "scheduler", "ssm", "states", "tagging",
)  # fmt: skip
#: How long the server may take to flush its state when it is asked to stop, before its process group is killed.
STOP_GRACE_SECONDS: Final = 15.0
#: Between the tries of an asynchronous call of a function, where AWS waits minutes.
FUNCTION_RETRY_SECONDS: Final = 0.2

_ROOT: Final = Path(__file__).resolve().parents[2]
#: In which functions run.
LAMBDA_PYTHON: Final = _ROOT / ".venv" / "bin" / "python"
#: In which Glue jobs run, by their GlueVersion: it has the Spark of that version.
GLUE_PYTHON: Final = {"5.1": LAMBDA_PYTHON, "6.0": _ROOT / ".venv-glue6" / "bin" / "python"}
#: Has Iceberg's jars in a folder for each GlueVersion.
JAR_DIR: Final = _ROOT / ".jars"
#: What all of these versions run.
JAVA_VERSION: Final = 17
#: Glue jobs that run at the same time; the others wait in STARTING. Each takes up to 1.5 GB.
JOBS_AT_ONCE: Final = 2
_REQUIREMENTS = Path(__file__).with_name("requirements.in")


def java_home() -> dict[str, str]:
    """Return the user's JAVA_HOME, if any: jobs use it if it has the right version."""
    return {"JAVA_HOME": os.environ["JAVA_HOME"]} if os.environ.get("JAVA_HOME") else {}


def client_environment(url: str) -> dict[str, str]:
    """Return the variables that direct a client to this address and nowhere else, without keys."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # The default checksum (CRC64NVME) is computed in pure Python at the other end.
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        # A proxy of the user's is not for loopback.
        "NO_PROXY": HOST,
        "no_proxy": HOST,
    }


def pinned_version() -> str:
    """Return the MiniStack that the patches were written for: the pin in requirements.in."""
    match = re.search(r"^ministack==(\S+)$", _REQUIREMENTS.read_text(), re.MULTILINE)
    if match is None:
        raise ValueError(f"{_REQUIREMENTS.name} does not pin ministack. Write `ministack==<version>`")
    return match[1]
