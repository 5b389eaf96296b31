"""An export of a deployed stage: its Glue job, the job's arguments, and what the export has in its bucket."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from config.exports import contracts
from config.exports.contract import Contract, WindowRule
from config.exports.window_ranges import BadWindows, select_windows
from config.exports.windows import Window, list_closed_windows
from glue_jobs import arguments
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas.shared.aws import read_error_code
from lambdas.shared.s3 import Objects

_GONE: Final = "EntityNotFoundException"


@attrs.frozen
class DeployedExport:
    """`arguments` are those that the template gives the job, and `minutes` is Glue's time limit of a run.

    The contract is that of this clone, and the first day that of the job.
    """

    ctx: DeploymentContext
    contract: Contract
    job: str
    arguments: Mapping[str, str]
    minutes: int

    @property
    def name(self) -> str:
        return self.contract.name

    @property
    def rule(self) -> WindowRule:
        first = self.arguments.get("--first-day")
        window = self.contract.window
        return attrs.evolve(window, first=date.fromisoformat(first)) if first else window

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(int(self.ctx.clock.time()), UTC)

    @property
    def objects(self) -> Objects:
        return Objects(self.ctx.client("s3"), self.arguments["--bucket"])

    def locate_folder(self, folder: str) -> str:
        """Return the beginning of the keys in a folder of the export: runs, manifests or skipped."""
        return f"{self.arguments['--prefix']}/{self.name}/{folder}/"

    def list_labels(self, folder: str) -> set[str]:
        """Return the names of the documents in a folder. Raises LakeferryError."""
        beginning = self.locate_folder(folder)
        keys = [listed.key for listed in self.objects.list(beginning)]
        return {key.removeprefix(beginning).removesuffix(".json") for key in keys}

    def list_settled(self) -> set[str]:
        """Return the windows that are published, or were empty and need no file. Raises LakeferryError."""
        return self.list_labels("manifests") | self.list_labels("skipped")

    def list_closed(self) -> list[Window]:
        """Return the windows that are over, oldest first."""
        return list(list_closed_windows(self.rule, self.now))

    def require_valid(self, given: Mapping[str, str]) -> None:
        """Check arguments of a run as the job will. Raises ExportError, CommandFailed."""
        words = [f"--export={self.name}"]
        words += [f"{name}={value}" for name, value in self.arguments.items()]
        words += [f"--{name}={value}" for name, value in given.items()]
        parsed = arguments.parse(words, now=self.now)
        if parsed.windows:
            self.select(parsed.windows, parsed.as_of)

    def select(self, windows: str, as_of: datetime) -> list[Window]:
        """Return the windows that a user names, oldest first. Raises CommandFailed."""
        try:
            return select_windows(windows, self.rule, as_of)
        except BadWindows as bad:
            hint = "Name closed windows of the export with --windows. Nothing was started"
            raise CommandFailed("EXP-WINDOWS", str(bad), hint) from None


def find_export(ctx: DeploymentContext, name: str) -> DeployedExport:
    """Raises CommandFailed if the stage has no such export, or if it isn't deployed."""
    names = [export.contract for export in ctx.deployment.exports]
    if name not in names:
        message = f"the deployment file of stage {ctx.stage} has no export {name!r}"
        hint = f"It has: {', '.join(names) or 'none'}. Nothing was started"
        raise CommandFailed("EXPORT-UNKNOWN", message, hint)
    job = f"{ctx.deployment.prefix}-{name}"
    stacks.require_part(ctx, "exports")
    with translate_aws_errors(f"reading job {job}"):
        found = _get_job(ctx, job)
    if found is None:
        message = f"there is no Glue job {job} in account {ctx.account}, {ctx.region}"
        hint = f"`lakeferry deploy --stage {ctx.stage}` creates it. Nothing was started"
        raise CommandFailed("NOT-DEPLOYED", message, hint)
    return DeployedExport(ctx, contracts.load(name), job, found["DefaultArguments"], int(found["Timeout"]))


def _get_job(ctx: DeploymentContext, job: str) -> dict[str, Any] | None:
    """Raises ClientError, BotoCoreError."""
    try:
        found: dict[str, Any] = ctx.client("glue").get_job(JobName=job)["Job"]
    except ClientError as error:
        if read_error_code(error) == _GONE:
            return None
        raise
    return found
