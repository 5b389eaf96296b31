"""Check the templates with checkov, which needs neither the network nor an account: `make checkov`.

dev/checkov.toml has the findings that are accepted. Exits with 1 for any other, and for an accepted one that
no longer occurs.
"""

from __future__ import annotations

import fnmatch
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from config.toml_model import BadFile
from dev import synthesis

ACCEPTED: Final = ROOT / "dev" / "checkov.toml"
#: Deployments of the tests: in a VPC with KMS keys, and with a table in Confluent's storage.
_OF_TESTS: Final = ("regulated", "managed")
_LIMIT_SECONDS: Final = 900


class NotChecked(Exception):
    """It is unknown what the templates contain. The message says why."""


@attrs.frozen
class Finding:
    """`deployment` is the name of the file, `resource` its type and logical id: AWS::S3::Bucket.Lake1A2B."""

    deployment: str
    rule: str
    asks: str
    resource: str


@attrs.frozen
class Accepted:
    """Findings that are accepted, each with the reason.

    `asks` is what the rule wants. `resources` are patterns. With `if_key` or `unless_key`, a finding is
    accepted only in deployments whose file has, or lacks, this table or key: network or encryption.logs.
    """

    rule: str
    asks: str
    resources: Sequence[str]
    reason: str
    if_key: str = ""
    unless_key: str = ""

    def is_for(self, file: Mapping[str, Any]) -> bool:
        """Return whether findings in the deployment of this file are accepted."""
        if self.if_key and not has_key(file, self.if_key):
            return False
        return not (self.unless_key and has_key(file, self.unless_key))


def read_accepted(file: Path = ACCEPTED) -> list[Accepted]:
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["accepted"]
    return [Accepted(**entry) for entry in entries]


def compare(
    findings: Sequence[Finding], accepted: Sequence[Accepted], files: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield one line for each finding that is not accepted, and for each accepted one that does not occur.

    `files` has the tables and keys of each deployment file.
    """
    accepted_findings: set[Finding] = set()
    absent: list[str] = []
    for entry in accepted:
        possible = [
            finding
            for finding in findings
            if finding.rule == entry.rule and entry.is_for(files[finding.deployment])
        ]
        for pattern in entry.resources:
            matching = [item for item in possible if fnmatch.fnmatchcase(item.resource, pattern)]
            accepted_findings.update(matching)
            if not matching:
                absent.append(f"{ACCEPTED.name}: {entry.rule} on {pattern} no longer occurs: remove it")
    for finding in findings:
        if finding not in accepted_findings:
            yield f"{finding.deployment}: {finding.rule} on {finding.resource}: {finding.asks}"
    yield from absent


def has_key(tables: Mapping[str, Any], key: str) -> bool:
    """Return whether the file has a table or key."""
    found: Any = tables
    for name in key.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return False
        found = found[name]
    return True


def read_report(text: str, resources: int) -> list[Finding]:
    """Return the findings in checkov's JSON. Raises NotChecked unless checkov read all `resources`."""
    try:
        report = json.loads(text)
        summary = report["summary"]
        failed = report["results"]["failed_checks"]
    except (ValueError, KeyError, TypeError) as error:
        raise NotChecked("checkov wrote no report about templates") from error
    if summary["parsing_errors"] or summary["skipped"] or summary["resource_count"] != resources:
        raise NotChecked(
            f"checkov read {summary['resource_count']} of {resources} resources, skipped "
            f"{summary['skipped']} checks and could not read {summary['parsing_errors']} files"
        )
    return [
        Finding(
            Path(check["file_path"]).parent.name, check["check_id"], check["check_name"], check["resource"]
        )
        for check in failed
    ]


def list_files() -> dict[str, Path]:
    """Return the deployment files that are checked: those of the project and two of the tests."""
    tests = [ROOT / "tests" / "data" / f"{name}.toml" for name in _OF_TESTS]
    return {file.stem: file for file in [*sorted(deployment_file.FOLDER.glob("*.toml")), *tests]}


def write_templates(name: str, file: Path, folder: Path) -> int:
    """Write the templates of a deployment into a folder with its name. Return the number of resources."""
    target = folder / name
    target.mkdir()
    count = 0
    with tempfile.TemporaryDirectory() as assembly:
        loaded = deployment_file.load(file, judge=NOT_JUDGED)
        synthesis.compose(loaded, Path(assembly)).synth()
        for template in Path(assembly).glob("*.template.json"):
            text = template.read_text(encoding="utf-8")
            (target / template.name).write_text(text, encoding="utf-8")
            count += len(json.loads(text)["Resources"])
    return count


def run_checkov(program: Path, folder: Path, resources: int) -> list[Finding]:
    """Return what checkov finds in the templates below `folder`. Raises NotChecked."""
    command = [str(program), "--framework", "cloudformation", "--skip-download", "--output", "json"]
    # A configuration file of the user could skip rules.
    environment = {**os.environ, "HOME": str(folder), "LOG_LEVEL": "ERROR"}
    done = subprocess.run(
        [*command, "--compact", "--quiet", "--directory", "."],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
    )
    try:
        return read_report(done.stdout, resources)
    except NotChecked as failure:
        reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise NotChecked(f"{failure}: {reason}") from failure


def main(program: Path) -> int:
    files = list_files()
    try:
        with tempfile.TemporaryDirectory() as folder:
            resources = sum(write_templates(name, file, Path(folder)) for name, file in files.items())
            findings = run_checkov(program.absolute(), Path(folder), resources)
    except (BadFile, NotChecked, RuntimeError) as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    tables = {name: tomllib.loads(file.read_text(encoding="utf-8")) for name, file in files.items()}
    lines = list(compare(findings, read_accepted(), tables))
    counts = f"{len(findings)} findings, {len(lines)} problems"
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.write(f"{resources} resources of {len(files)} deployments: {counts}\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
