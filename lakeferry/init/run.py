"""How `lakeferry init` goes: answers, the text that they make, its check, the difference, and the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
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

#: What a clone has, and nothing else.
_SIGNS: Final = ("app.py", "cdk.json", "deployments/model.py")
_TRIES: Final = 5


@attrs.frozen
class Clone:
    """A clone, and the stage whose file is made in it."""

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


def init(output: Output, stage: str, flags: Mapping[str, str | None], *, yes: bool, root: Path = ROOT) -> dict[str, Any]:
    """Raises CommandFailed, and then has written nothing."""
    clone = _clone(stage, root)
    text = clone.file.read_text(encoding="utf-8") if clone.file.is_file() else None
    before = _deployment(clone, text) if text is not None else None
    defaults = questions.defaults(questions.remembered(clone.answers_file), before)
    answers = _answers(output, clone, defaults, flags, yes=yes)
    now = editing.edited(text, before, defaults, answers) if text is not None and before else template.render_file(stage, answers)
    made = _deployment(clone, now)
    difference = _difference(clone, text or "", now)
    written = now != text and _may_write(output, clone, text, difference, yes=yes)
    if written:
        clone.file.write_text(now, encoding="utf-8")
    questions.remember(clone.answers_file, answers)
    return _report(output, clone, made, written=written, difference=difference)


def _clone(stage: str, root: Path) -> Clone:
    """Raises CommandFailed outside of a clone, and for what can't be a stage."""
    if not all((root / sign).is_file() for sign in _SIGNS) or not Path.cwd().is_relative_to(root):
        message = f"{Path.cwd()} is not in a clone of Lakeferry, and a deployment file lives in one"
        hint = f"Clone the project, or go to the clone of this command: {root}"
        raise CommandFailed("NO-CLONE", message, hint)
    if not validation.is_stage(stage):
        message = f"{stage[:40]!r} can't be a stage: small letters and digits, 2 to 12"
        raise CommandFailed("INIT-ANSWER", message, "Choose another --stage", details=[{"key": "stage"}])
    return Clone(root, stage)


def _deployment(clone: Clone, text: str) -> Deployment:
    """Raises CommandFailed with every mistake."""
    try:
        return check.parse(text, name=clone.name, root=clone.root).deployment
    except BadFile as bad:
        mistakes = [attrs.asdict(problem) for problem in bad.problems]
        hint = "Correct the file, or the answers; nothing was written. All keys: docs/reference/deployment-file.md"
        raise CommandFailed("DEPLOYMENT-FILE", str(bad), hint, details=mistakes) from None


def _answers(output: Output, clone: Clone, defaults: Answers, flags: Mapping[str, str | None], *, yes: bool) -> Answers:
    """Options first, then what somebody types, then defaults. Raises CommandFailed with every one that can't be."""
    given = {key: text for key, text in flags.items() if text is not None}
    answers = dict(defaults) | given
    if output.can_prompt and not yes:
        output.info(f"{clone.name}: press Enter to take what stands in brackets.")
        for question in QUESTIONS:
            if question.key not in given and questions.is_asked(question, answers):
                answers[question.key] = _asked(output, question, answers[question.key])
    if found := questions.wrong(answers):
        problems = "\n".join(f"  --{key.replace('_', '-')}: {why}" for key, why in found)
        details = [{"key": key, "message": why} for key, why in found]
        hint = "Correct these; nothing was written"
        raise CommandFailed("INIT-ANSWER", f"answers that can't be used:\n{problems}", hint, details=details)
    return answers


def _asked(output: Output, question: questions.Question, default: str) -> str:
    answer = default
    for _ in range(_TRIES):
        answer = output.ask(question.asks, default)
        if not (problems := question.wrong(answer)):
            break
        output.warn(f"  {problems}")
    return answer


def _may_write(output: Output, clone: Clone, text: str | None, difference: str, *, yes: bool) -> bool:
    """Nothing is written over without a word, with --yes neither. Raises CommandFailed where nobody can be asked."""
    if text is None:
        return True
    output.print(difference)
    if comments := sum(line.startswith("-") and line[1:].lstrip().startswith("#") for line in difference.splitlines()):
        output.warn(f"! {comments} lines of comments would be removed from {clone.name}")
    if exports := re.findall(r'^-\s*contract\s*=\s*"([^"]+)"', difference, re.MULTILINE):
        output.warn(f"! exports would be removed from {clone.name}: {', '.join(exports)}")
    if yes:
        return True
    if output.can_prompt:
        return output.ask(f"Write this to {clone.name}? yes or no", "no").lower() in ("y", "yes")
    message = f"{clone.name} exists, and the answers change it"
    raise CommandFailed("INIT-EXISTS", message, details={"diff": difference})


def _difference(clone: Clone, text: str, now: str) -> str:
    lines = difflib.unified_diff(text.splitlines(), now.splitlines(), f"{clone.name} now", f"{clone.name} then", lineterm="")
    return "\n".join(lines)


def _report(output: Output, clone: Clone, made: Deployment, *, written: bool, difference: str) -> dict[str, Any]:
    state = "written" if written else "as it was" if not difference else "left as it was"
    output.print(f"{clone.name}: {state}")
    for address in _examples(made):
        output.warn(f"! {address} is an example: mails to it go nowhere")
    secrets = [made.confluent.cloud_key_secret, *([made.snowflake.key_secret] if made.snowflake and made.uses_snowflake else [])]
    output.print(f"Not stored in it: the keys themselves. They go into Secrets Manager as {' and '.join(secrets)}.")
    following = list(_following(clone, made))
    output.print("Next: " + "\n      ".join(f"{program_name()} {words}" for words in following))
    return {
        "stage": clone.stage,
        "file": clone.name,
        "written": written,
        "diff": difference,
        "not_stored": secrets,
        "next": following,
    }


def _examples(made: Deployment) -> list[str]:
    every = [*made.alerts.engineers, *(address for export in made.exports for address in export.recipients)]
    return sorted({address for address in every if address.endswith("@example.com")})


def _following(clone: Clone, made: Deployment) -> Iterator[str]:
    vendors = ["confluent", *(["snowflake"] if made.uses_snowflake else [])]
    yield from (f"secrets set {vendor} --stage {clone.stage}" for vendor in vendors)
    yield from (f"{words} --stage {clone.stage}" for words in ("doctor", "plan", "deploy"))
