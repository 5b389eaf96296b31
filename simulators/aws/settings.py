"""Settings shared by the launcher (in .venv-aws) and the code that starts it (in .venv).

Uses only the standard library.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
ACCOUNT: Final = "000000000000"
#: Not us-east-1, where S3 accepts CreateBucket without a LocationConstraint.
REGION: Final = "eu-west-1"
#: MiniStack treats these keys as the account's root user, with and without enforcement of IAM policies.
ACCESS_KEY_ID: Final = "test"
SECRET_ACCESS_KEY: Final = "test"  # noqa: S105  (the dummy pair that every local AWS uses)
#: The only services that MiniStack serves. Add others here as needed.
SERVICES: Final = (
    "s3", "glue", "secretsmanager", "sts", "iam", "dynamodb", "cloudformation", "lambda", "sns", "sqs",
    "monitoring", "athena", "budgets", "ec2", "ecr", "events", "kms", "logs", "scheduler", "ses", "ssm",
    "states", "tagging", "apigateway",
)  # fmt: skip
#: How long the server may take to write its state after SIGTERM, before its process group is killed.
STOP_GRACE_SECONDS: Final = 15.0
#: Pause between the attempts of an asynchronous Lambda invocation. AWS waits minutes.
FUNCTION_RETRY_SECONDS: Final = 0.2

_ROOT: Final = Path(__file__).resolve().parents[2]
#: The interpreter that runs Lambda functions.
LAMBDA_PYTHON: Final = _ROOT / ".venv" / "bin" / "python"
#: The interpreters that run Glue jobs, by GlueVersion. Each has the Spark of that version.
GLUE_PYTHON: Final = {"5.1": LAMBDA_PYTHON, "6.0": _ROOT / ".venv-glue6" / "bin" / "python"}
#: Has a folder of Iceberg JARs for each GlueVersion.
JAR_DIR: Final = _ROOT / ".jars"
#: The Java version of all these Glue versions.
JAVA_VERSION: Final = 17
#: How many Glue job runs execute at the same time; the others wait in STARTING. Each uses up to 1.5 GB of
#: memory.
JOBS_AT_ONCE: Final = 2
_REQUIREMENTS = Path(__file__).with_name("requirements.in")


def get_java_home() -> dict[str, str]:
    """Return JAVA_HOME if the user has set it. Glue jobs use it if its Java has the right version."""
    return {"JAVA_HOME": os.environ["JAVA_HOME"]} if os.environ.get("JAVA_HOME") else {}


def build_client_environment(url: str) -> dict[str, str]:
    """Return the environment variables that direct AWS clients to `url` only. They contain no credentials."""
    return build_job_environment(url) | {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}


def build_job_environment(url: str) -> dict[str, str]:
    """Return the environment variables of a Glue job: those of clients without a region, because AWS
    documents none for jobs.
    """
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        # MiniStack computes the SDK's default checksum (CRC64NVME) in pure Python, which is slow.
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        # Requests to loopback must not go through the user's proxy.
        "NO_PROXY": HOST,
        "no_proxy": HOST,
    }


def read_pinned_version() -> str:
    """Return the MiniStack version that the patches were written for, which requirements.in pins."""
    match = re.search(r"^ministack==(\S+)$", _REQUIREMENTS.read_text(), re.MULTILINE)
    if match is None:
        raise ValueError(f"{_REQUIREMENTS.name} does not pin ministack. Write `ministack==<version>`")
    return match[1]
