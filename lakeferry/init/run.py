"""Run `lakeferry init`: collect the answers, render and check the file, show the difference, write it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from deployments import check, validation
from deployments.check import BadFile
from deployments.model import Deployment
from lakeferry.errors import CommandFailed
from lakeferry.init import editing, questions, template
from lakeferry.init.questions import QUESTIONS, Answers
from lakeferry.local.bootstrap import ROOT
from lakeferry.output import Output, program_name

#: Files by which a clone is recognised.
_MARKERS: Final = ("app.py", "cdk.json", "deployments/model.py")
_TRIES: Final = 5


@attrs.frozen
class Clone:
    """A clone of the repository, and the stage whose deployment file is written."""

    root: Path
    stage: str

    @property
    def file(self) -> Path:
        return self.root / "deployments" / f"{self.stage}.toml"

    @property
    def name(self) -> str:
        return f"deployments/{self.stage}.toml"

    @property
    def answers_file(self) -> Path:
        return self.root / ".lakeferry" / "answers.json"


def init(output: Output, stage: str, flags: Mapping[str, str | None], *, yes: bool) -> dict[str, Any]:
    """Write the deployment file and return the command's document. Raises CommandFailed before it writes anything."""
    clone = _clone(stage)
    text = clone.file.read_text(encoding="utf-8") if clone.file.is_file() else None
    before = _deployment(clone, text) if text is not None else None
    defaults = questions.defaults(questions.load_answers(clone.answers_file), before)
    answers = _answers(output, clone, defaults, flags, yes=yes)
    if text is not None and before:
        new_text = editing.update(text, before, defaults, answers)
    else:
        new_text = template.render_file(stage, answers)
    deployment = _deployment(clone, new_text)
    lines = (text or "").splitlines(), new_text.splitlines()
    difference = "\n".join(difflib.unified_diff(*lines, f"{clone.name} now", f"{clone.name} then", lineterm=""))
    written = new_text != text and (text is None or _confirm(output, clone, difference, yes=yes))
    if written:
        clone.file.write_text(new_text, encoding="utf-8")
    questions.save_answers(clone.answers_file, answers)
    return _report(output, clone, deployment, written=written, difference=difference)


def _clone(stage: str) -> Clone:
    """Return the clone. Raises CommandFailed if the current folder is not in it, or if the stage is not valid."""
    if not all((ROOT / marker).is_file() for marker in _MARKERS) or not Path.cwd().is_relative_to(ROOT):
        message = f"{Path.cwd()} is not in a clone of Lakeferry, where deployment files are stored"
        hint = f"Clone the project, or change to the clone that this command belongs to: {ROOT}"
        raise CommandFailed("NO-CLONE", message, hint)
    if not validation.is_stage(stage):
        message = f"{stage[:40]!r} is not a valid stage: use 2 to 12 lower-case letters and digits"
        raise CommandFailed("INIT-ANSWER", message, "Choose another --stage", details=[{"key": "stage"}])
    return Clone(ROOT, stage)


def _deployment(clone: Clone, text: str) -> Deployment:
    """Parse the text of a deployment file. Raises CommandFailed with every mistake."""
    try:
        return check.parse(text, name=clone.name, root=clone.root, judge=check.NOT_JUDGED).deployment
    except BadFile as bad:
        mistakes = [attrs.asdict(problem) for problem in bad.problems]
        hint = "Correct the file, or the answers; nothing was written. All keys: docs/reference/deployment-file.md"
        raise CommandFailed("DEPLOYMENT-FILE", str(bad), hint, details=mistakes) from None


def _answers(output: Output, clone: Clone, defaults: Answers, flags: Mapping[str, str | None], *, yes: bool) -> Answers:
    """Collect the answers from options, else prompts, else defaults. Raises CommandFailed with every invalid answer."""
    given = {key: text for key, text in flags.items() if text is not None}
    answers = dict(defaults) | given
    if output.can_prompt and not yes:
        output.info(f"{clone.name}: press Enter to accept the default in brackets.")
        for question in QUESTIONS:
            if question.key not in given and questions.applies(question, answers):
                answers[question.key] = _ask(output, question, answers[question.key])
    if invalid := questions.problems(answers):
        lines = "\n".join(f"  --{key.replace('_', '-')}: {why}" for key, why in invalid)
        details = [{"key": key, "message": why} for key, why in invalid]
        hint = "Correct these; nothing was written"
        raise CommandFailed("INIT-ANSWER", f"invalid answers:\n{lines}", hint, details=details)
    return answers


def _ask(output: Output, question: questions.Question, default: str) -> str:
    answer = default
    for _ in range(_TRIES):
        answer = output.ask(question.text, default)
        if not (problem := question.check(answer)):
            break
        output.warn(f"  {problem}")
    return answer


def _confirm(output: Output, clone: Clone, difference: str, *, yes: bool) -> bool:
    """Show the difference and ask whether to write it; --yes skips the question. Raises CommandFailed if it can't be asked."""
    output.print(difference)
    if comments := sum(line.startswith("-") and line[1:].lstrip().startswith("#") for line in difference.splitlines()):
        output.warn(f"! {comments} comment lines would be removed from {clone.name}")
    if exports := re.findall(r'^-\s*contract\s*=\s*"([^"]+)"', difference, re.MULTILINE):
        output.warn(f"! exports would be removed from {clone.name}: {', '.join(exports)}")
    if yes:
        return True
    if output.can_prompt:
        return output.ask(f"Write this to {clone.name}? yes or no", "no").lower() in ("y", "yes")
    message = f"{clone.name} exists, and the answers change it"
    raise CommandFailed("INIT-EXISTS", message, details={"diff": difference})


def _report(output: Output, clone: Clone, deployment: Deployment, *, written: bool, difference: str) -> dict[str, Any]:
    state = "written" if written else "unchanged" if not difference else "not written"
    output.print(f"{clone.name}: {state}")
    addresses = {*deployment.alerts.engineers, *(address for export in deployment.exports for address in export.recipients)}
    for address in sorted(addresses):
        if address.endswith("@example.com"):
            output.warn(f"! {address} is an example: mails to it are not delivered")
    vendors, secrets = ["confluent"], [deployment.confluent.cloud_key_secret]
    if deployment.snowflake and deployment.uses_snowflake:
        vendors.append("snowflake")
        secrets.append(deployment.snowflake.key_secret)
    output.print(f"The keys themselves are not in this file. Store them in Secrets Manager as {' and '.join(secrets)}.")
    commands = [*(f"secrets set {vendor}" for vendor in vendors), "doctor", "plan", "deploy"]
    following = [f"{command} --stage {clone.stage}" for command in commands]
    output.print("Next: " + "\n      ".join(f"{program_name()} {command}" for command in following))
    return {
        "stage": clone.stage,
        "file": clone.name,
        "written": written,
        "diff": difference,
        "not_stored": secrets,
        "next": following,
    }
