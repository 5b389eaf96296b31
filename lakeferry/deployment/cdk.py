"""Run the pinned version of the CDK CLI, for a deployment or directly: `python -m lakeferry.deployment.cdk
synth`.

The CLI is downloaded once. Templates are synthesised by running the app directly, because the CLI is slow to
start.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from lakeferry.deployment import node
from lakeferry.deployment.node import Node, NoNode
from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT
from lakeferry.output import Reporter
from lambdas.shared.redaction import redact

if TYPE_CHECKING:
    from lakeferry.deployment.context import DeploymentContext

PACKAGE: Final = "aws-cdk"
#: In the folder of the package.
_SERVICE_SPECIFICATION: Final = "db.json.gz"
NOT_READY: Final = 3
#: The only context value that the CDK CLI adds and that changes the templates.
_ASSET_METADATA: Final = "aws:cdk:enable-asset-metadata"
_EVENT: Final = re.compile(r"^(?P<stack>\S+) \| +(?P<done>\d+)/(?P<all>\d+) \|")
_KEPT_LINES: Final = 40
_POLL: Final = 5.0
_END_SECONDS: Final = 10.0


class NoCommandLine(Exception):
    """The CDK CLI can't be installed. The message is one sentence for the user."""


def main(arguments: Sequence[str]) -> int:
    try:
        node_ = node.find()
        return subprocess.run(
            [node_.binary, ensure_command_line(node_), *arguments], cwd=ROOT, env=build_environment(node_)
        ).returncode
    except (NoNode, NoCommandLine) as missing:
        sys.stderr.write(f"{missing}\n")
        return NOT_READY


def ensure_command_line(node_: Node, root: Path = ROOT) -> Path:
    """Return the CLI's script in the version that package.json pins; install it if necessary.

    Raises NoCommandLine.
    """
    if read_installed(root) != read_pinned(root):
        with (root / "package.json").open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process may install it at the same time
            if read_installed(root) != read_pinned(root):
                _fetch(node_, root)
    return root / "node_modules" / PACKAGE / "bin" / "cdk"


def find_service_specification() -> Path:
    """Return the CLI's file of CloudFormation's resource types; install the CLI if necessary.

    Raises CommandFailed.
    """
    try:
        script = ensure_command_line(node.find())
    except (NoNode, NoCommandLine) as missing:
        raise CommandFailed("NO-CDK", str(missing)) from None
    return script.parents[1] / _SERVICE_SPECIFICATION


def _fetch(node_: Node, root: Path) -> None:
    command = [*node_.npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    answer = subprocess.run(command, cwd=root, env=build_environment(node_), capture_output=True, text=True)
    if read_installed(root) != read_pinned(root):
        last_line = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["npm said nothing"]
        raise NoCommandLine(
            f"the CDK CLI {read_pinned(root)} could not be installed: {last_line[0]}. Check the network"
        )


def build_environment(node_: Node) -> dict[str, str]:
    """Return the environment variables for CDK: those of this process, and settings of CDK.

    They select the Node.js binary, and turn off telemetry and the check for newer versions.
    """
    ours: Mapping[str, str] = {
        "JSII_NODE": str(node_.binary),
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        # Some containers set it. Then each synthesis would compile CDK's 2,000 modules again, which takes
        # seconds.
        "PYTHONDONTWRITEBYTECODE": "",
        "PATH": f"{node_.binary.parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    return {**os.environ, **ours}


def build_app_command(folder: Path, context: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the app's command from cdk.json, and the environment variables with which it synthesises into
    `folder`.

    They are those that `cdk synth` would set.
    """
    settings = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))
    values = {**settings["context"], _ASSET_METADATA: True, **context}
    return shlex.split(settings["app"]), {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(values)}


def read_pinned(root: Path = ROOT) -> str:
    version: str = json.loads((root / "package.json").read_text(encoding="utf-8"))["devDependencies"][PACKAGE]
    return version


def read_installed(root: Path = ROOT) -> str | None:
    """Return the installed version of the CDK CLI, None if there is none."""
    try:
        text = (root / "node_modules" / PACKAGE / "package.json").read_text(encoding="utf-8")
        version: str = json.loads(text)["version"]
    except (OSError, ValueError, KeyError):
        return None
    return version


class CliFailed(Exception):
    """The CDK CLI or the app exited with an error. `lines` are the last lines of its output."""

    def __init__(self, verb: str, lines: Sequence[str]) -> None:
        super().__init__(f"cdk {verb} failed:\n" + "\n".join(lines))
        self.lines = list(lines)


@attrs.define
class Cdk:
    """CDK for a deployment.

    `folder` holds the templates. All output is appended to the file `log`, without secrets. `root` is the
    checkout whose app and project are used.
    """

    ctx: DeploymentContext
    folder: Path
    log: Path = Path(os.devnull)
    root: Path = ROOT

    def synth(self, report: Reporter, deployments: Path | None = None, repair: str = "") -> None:
        """Synthesise the templates into `folder`. Raises CliFailed, CommandFailed.

        `deployments` is the folder of the deployment files if it is not the project's own. `repair` is a CDK
        context value.
        """
        values = {"deployments": str(deployments.resolve()) if deployments else "", "repair": repair}
        command, variables = build_app_command(self.folder, {**self.ctx.context(), **values})
        self._run("synth", command, report, variables=variables)

    def bootstrap(self, report: Reporter) -> None:
        """Bootstrap the region. The app is set to "" because the CLI would synthesise it otherwise."""
        self._run("bootstrap", ["--app", "", f"aws://{self.ctx.account}/{self.ctx.region}"], report)

    def deploy(self, report: Reporter, *stacks: str, meanwhile: Callable[[], object] | None = None) -> None:
        words = ["--app", str(self.folder), "--require-approval", "never", "--progress", "events"]
        self._run("deploy", [*words, *(stacks or ["--all"])], report, meanwhile)

    def destroy(self, report: Reporter) -> None:
        words = ["--app", str(self.folder), "--force", "--all", "--progress", "events"]
        self._run("destroy", words, report)

    def _run(
        self,
        verb: str,
        words: Sequence[str],
        report: Reporter,
        meanwhile: Callable[[], object] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Run the CDK CLI with the arguments `words`; or, if there are `variables`, run the command `words`.

        `meanwhile` is called every few seconds. Raises CliFailed, and CommandFailed without a supported
        Node.js or if the CLI can't be installed.
        """
        last: deque[str] = deque(maxlen=_KEPT_LINES)
        started = _start_process(verb, words, variables, self.root)
        with self.log.open("a", encoding="utf-8") as log, started as running:
            reader = threading.Thread(target=_read, args=(running, log, report, last))
            reader.start()
            try:
                _await(running, meanwhile)
            finally:
                _end(running)
                reader.join()
        if running.returncode:
            raise CliFailed(verb, [line for line in last if line.strip()])


@contextmanager
def open_templates(ctx: DeploymentContext, log: Path = Path(os.devnull)) -> Iterator[Cdk]:
    """Yield a Cdk with a temporary folder for the templates."""
    with tempfile.TemporaryDirectory(prefix="lakeferry-cdk-") as folder:
        yield Cdk(ctx, Path(folder), log)


def _start_process(
    verb: str, words: Sequence[str], variables: Mapping[str, str] | None, root: Path
) -> subprocess.Popen[str]:
    """Start the process in its own session, so that Ctrl-C reaches only this process, which then stops the
    other one.
    """
    try:
        node_ = node.find()
        command = (
            list(words) if variables else [str(node_.binary), str(ensure_command_line(node_)), verb, *words]
        )
    except (NoNode, NoCommandLine) as missing:
        raise CommandFailed("NO-CDK", str(missing)) from None
    return subprocess.Popen(
        command, cwd=root, env={**build_environment(node_), **(variables or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace",
        start_new_session=True,
    )  # fmt: skip


def _read(running: subprocess.Popen[str], log: Any, report: Reporter, last: deque[str]) -> None:
    assert running.stdout is not None
    for line in running.stdout:
        log.write(redact(line))
        log.flush()
        if event := _EVENT.match(line):
            report(f"{event['stack']} {event['done']}/{event['all']}")
        last.append(redact(line.rstrip()))


def _await(running: subprocess.Popen[str], meanwhile: Callable[[], object] | None) -> None:
    while True:
        try:
            running.wait(_POLL)
        except subprocess.TimeoutExpired:
            if meanwhile:
                meanwhile()
        else:
            return


def _end(running: subprocess.Popen[str]) -> None:
    """Stop the process if it still runs. CloudFormation completes the operations that have begun."""
    if running.poll() is not None:
        return
    os.killpg(running.pid, signal.SIGTERM)
    try:
        running.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
