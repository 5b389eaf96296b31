"""Functions in the embedded AWS, and secrets that they rotate."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from pathlib import Path

from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
_numbers = itertools.count(1)
#: A function that performs each step of a rotation and records it in a tag of the secret.
_ECHO = """
import boto3, json, os

def handler(event, context):
    secrets = boto3.client("secretsmanager")
    secret, token, step = event["SecretId"], event["ClientRequestToken"], event["Step"]
    tags = {tag["Key"]: tag["Value"] for tag in secrets.describe_secret(SecretId=secret)["Tags"]}
    secrets.tag_resource(SecretId=secret, Tags=[{"Key": "steps", "Value": (tags.get("steps", "") + " " + step).strip()}])
    if step == "createSecret":
        secrets.put_secret_value(SecretId=secret, ClientRequestToken=token, SecretString="new", VersionStages=["AWSPENDING"])
    if step == "finishSecret":
        stages = secrets.describe_secret(SecretId=secret)["VersionIdsToStages"]
        old = next(version for version, held in stages.items() if "AWSCURRENT" in held)
        secrets.update_secret_version_stage(
            SecretId=secret, VersionStage="AWSCURRENT", MoveToVersionId=token, RemoveFromVersionId=old
        )
"""


def new_function(
    aws, files, handler, *, role=None, environment=None, timeout=60, name="", runtime="python3.11"
):
    """Create a function and return its ARN. `files` has texts by path."""
    name = name or f"function-{next(_numbers)}"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    role = role or aws.new_role((["secretsmanager:*"], "*"))
    made = aws.functions.create_function(
        FunctionName=name,
        Runtime=runtime,
        Role=role,
        Handler=handler,
        Code={"ZipFile": content.getvalue()},
        Timeout=timeout,
        Environment={"Variables": environment or {}},
    )
    return made["FunctionArn"]


def let_in(aws, function, principal="secretsmanager.amazonaws.com"):
    aws.functions.add_permission(
        FunctionName=function, StatementId="rotation", Action="lambda:InvokeFunction", Principal=principal
    )
    return function


def echo(aws, open_to="secretsmanager.amazonaws.com"):
    return let_in(aws, new_function(aws, {"echo.py": _ECHO}, "echo.handler"), open_to)


def echoing_secret(aws):
    name = f"echo-{next(_numbers)}"
    aws.secrets.create_secret(Name=name, SecretString="old", Tags=[{"Key": "steps", "Value": ""}])
    return name


def recorded_steps(aws, name):
    """Return the steps that the function recorded, once the rotation has ended."""
    until(lambda: "AWSPENDING" not in str(aws.secrets.describe_secret(SecretId=name)["VersionIdsToStages"]))
    tags = aws.secrets.describe_secret(SecretId=name)["Tags"]
    return next(tag["Value"] for tag in tags if tag["Key"] == "steps").split()


def invoked(aws, source):
    function = new_function(aws, {"it.py": source}, "it.handler")
    return json.loads(aws.functions.invoke(FunctionName=function)["Payload"].read())


def lambdas():
    """Return the code of our functions, as it ships."""
    return {
        str(file.relative_to(ROOT)): file.read_text() for file in sorted((ROOT / "lambdas").rglob("*.py"))
    }


def least(aws, *arns, states):
    """Create a role that may rotate these secrets and read a table of states, and nothing else."""
    actions = [
        "DescribeSecret",
        "GetSecretValue",
        "PutSecretValue",
        "UpdateSecretVersionStage",
        "ListSecretVersionIds",
    ]
    may_read_states = (["dynamodb:Scan"], [aws.arn("dynamodb", f"table/{states}")])
    return aws.new_role(([f"secretsmanager:{action}" for action in actions], list(arns)), may_read_states)
