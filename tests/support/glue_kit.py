"""Runs an export in the embedded Glue as its stack defines it: with the template's properties, the script and
the zip.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import attrs

from lakeferry.local import spark as local_spark
from stacks import assets
from tests.support.assembly_kit import dev_templates
from tests.support.aws_clients import Clients
from tests.support.lake import AS_OF, Lake
from tests.support.runtime_kit import ended, numbered, service_role
from tests.support.waiting import PATIENCE

_PASSED_ON = (
    "Command",
    "ExecutionProperty",
    "GlueVersion",
    "MaxRetries",
    "NumberOfWorkers",
    "Timeout",
    "WorkerType",
)


@attrs.frozen
class GlueRun:
    """The JobRun of GetJobRun, and the lines of the run's log groups."""

    record: dict[str, Any]
    output: list[str]
    error: list[str]


def run_in_glue(lake: Lake, contract: str, **arguments: str) -> GlueRun:
    """Start the job with a contract, a name or a path, and wait for its end.

    `arguments` have underscores instead of hyphens.
    """
    aws = Clients(lake.aws)
    job = _new_job(aws, lake)
    given = {"--export": contract, "--as-of": AS_OF.isoformat()}
    given |= {f"--{name.replace('_', '-')}": value for name, value in arguments.items()}
    run_id = aws.glue.start_job_run(JobName=job, Arguments=given)["JobRunId"]
    record = ended(aws, job, run_id, PATIENCE)
    prefix = _template(lake)["DefaultArguments"]["--custom-logGroup-prefix"]
    output, error = (_lines(aws, f"{prefix}/{part}", run_id) for part in ("output", "error"))
    return GlueRun(record, output, error)


def _new_job(aws: Clients, lake: Lake) -> str:
    """Create a job like the template's, whose script and zip are in the lake's bucket."""
    properties = _template(lake)
    name = numbered("shipped")
    script = "code/export.py"
    code = "code/lakeferry.zip"
    lake.s3.upload_file(str(assets.locate_glue_script()), lake.target.bucket, script)
    lake.s3.upload_file(str(assets.build_glue_zip()), lake.target.bucket, code)
    command = properties["Command"] | {"ScriptLocation": f"s3://{lake.target.bucket}/{script}"}
    arguments = properties["DefaultArguments"] | {"--extra-py-files": f"s3://{lake.target.bucket}/{code}"}
    shared = {name: properties[name] for name in _PASSED_ON} | {
        "Command": command,
        "DefaultArguments": arguments,
    }
    shared["GlueVersion"] = (
        local_spark.GLUE_VERSION
    )  # `make test-glue-6` tests the job with the Spark of Glue 6.0
    aws.glue.create_job(Name=name, Role=service_role(aws, "glue"), **shared)
    return name


def _template(lake: Lake) -> dict[str, Any]:
    """Return the properties of a job of the shipped deployment, with the lake's names instead of
    references.
    """
    resources = dev_templates()["exports"]["Resources"].values()
    properties = next(
        resource["Properties"] for resource in resources if resource["Type"] == "AWS::Glue::Job"
    )
    names = {
        "LakeBucket": lake.target.bucket,
        "KafkaCluster": lake.target.database,
        "AggregateTables": lake.target.aggregates_database,
    }
    resolved: dict[str, Any] = _resolved(properties, names)
    return resolved


def _resolved(value: Any, names: dict[str, str]) -> Any:
    """Replace each reference to another stack by the name whose key is in the reference."""
    if isinstance(value, dict) and "Fn::ImportValue" in value:
        return next(name for key, name in names.items() if key in value["Fn::ImportValue"])
    if isinstance(value, dict) and "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return separator.join(_resolved(part, names) for part in parts)
    if isinstance(value, dict):
        return {key: _resolved(item, names) for key, item in value.items()}
    return value


def _lines(aws: Clients, group: str, stream: str) -> list[str]:
    with contextlib.suppress(aws.client("logs").exceptions.ResourceNotFoundException):  # nothing was written
        pages = (
            aws.client("logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=group, logStreamNames=[stream])
        )
        return [event["message"] for page in pages for event in page["events"]]
    return []


def findings(lines: list[str]) -> dict[str, Any]:
    """Return what the probe saw, by the name of each finding.

    Fails with its lines if it did not reach its end.
    """
    last = next((line for line in reversed(lines) if line.startswith("probe {")), "")
    assert last, "\n".join(lines)
    return {
        finding["name"]: finding["seen"] for finding in json.loads(last.removeprefix("probe "))["findings"]
    }
