"""accepted-findings.md: what the rule packs and checkov find in the templates, and why it is accepted."""

from __future__ import annotations

import functools
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.project import ROOT
from dev import checkov, synthesis
from dev.docs import markdown
from dev.docs.markdown import format_code

#: Together they have every reason: without and with a VPC and KMS keys.
_FILES: Final = ("shipped/dev", "regulated")
_INTRO: Final = """\
Rules check the templates, and each finding that is accepted has a reason. This page lists them for a security department. Any other
finding stops the synthesis, and with it `lakeferry deploy`, or fails the check of a change. A finding that a VPC or a KMS key of
yours removes is accepted only if the [deployment file](deployment-file.md) doesn't name one."""
_NAG: Final = """\
[cdk-nag](https://github.com/cdklabs/cdk-nag) checks each synthesis with its packs AwsSolutions, Serverless and NIST 800-53 R5, and CDK
with its own rules. A reason is accepted for the constructs that declare it, in the stacks of the last column; it is at the construct
in `stacks/`. `AwsSolutions-IAM5` reports each wildcard in a permission separately."""
_CHECKOV: Final = """\
[checkov](https://www.checkov.io) checks the templates of the deployments in `project/deployments/`, and of two deployments of the
tests, one of them with a VPC and KMS keys: `make checkov`, which CI runs for each change. It needs no account. An accepted finding that
no longer occurs fails too. The list is `dev/checkov.toml`; CDK's logical ids end in eight digits, which `*` replaces."""


def build_page() -> str:
    return markdown.format_page(
        "Accepted findings",
        _INTRO,
        f"## cdk-nag\n\n{_NAG}",
        markdown.format_table(["rules", "why it is accepted", "stacks"], _list_acknowledgements()),
        f"## checkov\n\n{_CHECKOV}",
        markdown.format_table(
            ["rule", "what it wants", "resources", "why it is accepted"],
            [_describe(entry) for entry in checkov.read_accepted()],
        ),
    )


@functools.cache
def _list_acknowledgements() -> tuple[tuple[str, str, str], ...]:
    """Return a row for each reason."""
    rules = defaultdict(set)
    stacks = defaultdict(set)
    for file in _FILES:
        loaded = deployment_file.load(ROOT / "tests" / "data" / f"{file}.toml", judge=NOT_JUDGED)
        with tempfile.TemporaryDirectory() as folder:
            synthesis.compose(loaded, Path(folder)).synth()
            for accepted in synthesis.read_acknowledgements(Path(folder)):
                stack = accepted.construct.partition("/")[0]
                rules[accepted.reason].add(accepted.rule.partition("[")[0].removeprefix("Annotation::"))
                stacks[accepted.reason].add(stack.removeprefix(f"{loaded.deployment.prefix}-"))
    rows = [
        (", ".join(map(format_code, sorted(rules[reason]))), reason, ", ".join(sorted(stacks[reason])))
        for reason in rules
    ]
    return tuple(sorted(rows))


def _describe(entry: checkov.Accepted) -> tuple[str, str, str, str]:
    where = ", ".join(map(format_code, entry.resources))
    if entry.if_key:
        where += f" if the file has `{entry.if_key}`"
    if entry.unless_key:
        where += f" unless the file has `{entry.unless_key}`"
    return format_code(entry.rule), entry.asks, where, entry.reason
