"""Run `lakeferry init`: collect the answers, render and check the file, show the difference, write it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from config.deployments import deployment_file, validation
from config.deployments.model import Deployment
from config.exports import contracts
from config.exports.check import NOT_JUDGED
from config.project import PROJECT, ROOT
from config.toml_model import BadFile
from lakeferry.errors import CommandFailed
from lakeferry.init import editing, questions, template
from lakeferry.init.questions import QUESTIONS, Answers, Question
from lakeferry.output import Output, find_program_name

#: Files by which a clone is recognised.
_MARKERS: Final = ("app.py", "cdk.json", "config/deployments/model.py")
_TRIES: Final = 5
_NOT_WRITTEN: Final = "not written"


@attrs.frozen
class Clone:
    """A clone of the repository, and the stage whose deployment file is written."""

    root: Path
    stage: str

    @property
    def project(self) -> Path:
        return self.root / PROJECT.name

    @property
    def file(self) -> Path:
        return self.project / "deployments" / f"{self.stage}.toml"

    @property
    def name(self) -> str:
        return f"project/deployments/{self.stage}.toml"

    @property
    def answers_file(self) -> Path:
        return self.root / ".lakeferry" / "answers.json"


def init(output: Output, stage: str, flags: Mapping[str, str | None], *, yes: bool) -> dict[str, Any]:
    """Write the deployment file and return the command's document.

    Raises CommandFailed before it writes anything.
    """
    clone = _clone(stage)
    text = clone.file.read_text(encoding="utf-8") if clone.file.is_file() else None
    before = _parse_deployment(clone, text) if text is not None else None
    defaults = questions.choose_defaults(questions.load_answers(clone.answers_file), before)
    _name_remembered(output, defaults, before)
    answers = _collect_answers(output, clone, defaults, flags, before, yes=yes)
    # If the file then has a mistake, nobody answers ten questions again. Topics are what it is mostly about.
    questions.save_answers(
        clone.answers_file, {key: text for key, text in answers.items() if key != "topics"}
    )
    if text is not None and before:
        new_text = editing.update(text, before, defaults, answers)
    else:
        new_text = template.render_file(stage, answers)
    deployment = _parse_deployment(clone, new_text)
    lines = (text or "").splitlines(), new_text.splitlines()
    difference = "\n".join(
        difflib.unified_diff(*lines, f"{clone.name} now", f"{clone.name} then", lineterm="")
    )
    written = new_text != text and (text is None or _confirm(output, clone, difference, yes=yes))
    if written:
        unfinished = clone.file.with_suffix(".unfinished")
        unfinished.write_text(new_text, encoding="utf-8")
        unfinished.replace(clone.file)  # an interrupted command leaves the file as it was
    questions.save_answers(clone.answers_file, answers)
    for warning in _find_unused_answers(answers, deployment):
        output.warn(f"! {warning}")
    return _report(output, clone, deployment, written=written, difference=difference)


def _clone(stage: str) -> Clone:
    """Return the clone.

    Raises CommandFailed if the current folder is not in it, or if the stage is not valid.
    """
    if not all((ROOT / marker).is_file() for marker in _MARKERS) or not Path.cwd().is_relative_to(ROOT):
        message = f"{Path.cwd()} is not in a clone of Lakeferry, where deployment files are stored"
        hint = f"Clone the project, or change to the clone that this command belongs to: {ROOT}"
        raise CommandFailed("NO-CLONE", message, hint)
    if not validation.is_stage(stage):
        message = f"{stage[:40]!r} is not a valid stage: use 2 to 12 lower-case letters and digits"
        raise CommandFailed("INIT-ANSWER", message, "Choose another --stage", details=[{"key": "stage"}])
    return Clone(ROOT, stage)


def _parse_deployment(clone: Clone, text: str) -> Deployment:
    """Parse the text of a deployment file. Raises CommandFailed with every mistake."""
    try:
        return deployment_file.parse(text, name=clone.name, root=clone.project, judge=NOT_JUDGED).deployment
    except BadFile as bad:
        mistakes = [attrs.asdict(problem) for problem in bad.problems]
        hint = (
            "Correct the file, or the answers; nothing was written. All keys: "
            "docs/reference/deployment-file.md"
        )
        raise CommandFailed("DEPLOYMENT-FILE", str(bad), hint, details=mistakes) from None


def _name_remembered(output: Output, defaults: Answers, before: Deployment | None) -> None:
    """Say for a new file which defaults are the last answers, because these may be those for another
    stage.
    """
    if before is not None:
        return
    standard = questions.choose_defaults({}, None)
    others = [
        f"{key.replace('_', ' ')} {defaults[key]}" for key in standard if defaults[key] != standard[key]
    ]
    if others:
        output.info(f"Defaults from your last answers (.lakeferry/answers.json): {'; '.join(others)}")


def _find_topics_to_import(deployment: Deployment) -> list[str]:
    if deployment.source is None and not deployment.uses_existing_cluster:
        return []
    return template.find_topics_without_schema(topic.name for topic in deployment.topics)


def _find_unused_answers(answers: Answers, deployment: Deployment) -> Iterator[str]:
    """Yield a sentence about answers that are not in the file, and why."""
    topics = ", ".join(topic.name for topic in deployment.topics) or "a topic of the file"
    without_schema = _find_topics_to_import(deployment)
    if without_schema:
        source = "Schema Registry" if deployment.uses_existing_cluster else "the tables"
        yield (
            f"exports of {', '.join(without_schema)} are not in the file yet: their schemas are not known. "
            f"`{find_program_name()} topics import --stage {deployment.identity.stage}` reads them from "
            f"{source}; then run this command again"
        )
    elif not deployment.exports:
        names = (
            f"the schedule {answers['schedule']}, the zone {answers['zone']} and the recipients "
            f"{answers['recipients']}"
        )
        yield (
            f"not used yet: {names}. No contract in project/exports/ reads {topics}: "
            "write one (docs/how-to/change-a-deployment.md#add-an-export), then run this command again"
        )
    if answers["snowflake"] != questions.NONE and not deployment.uses_snowflake:
        yield (
            f"not used: the Snowflake account {answers['snowflake']}. No topic has a table that Snowflake "
            "can read"
        )
    for name in contracts.load_all()[1]:
        command = f"{find_program_name()} export check {name}"
        yield f"project/exports/{name}.toml was left out, because it has mistakes: `{command}` names them"


def _collect_answers(
    output: Output,
    clone: Clone,
    defaults: Answers,
    flags: Mapping[str, str | None],
    before: Deployment | None,
    *,
    yes: bool,
) -> Answers:
    """Collect the answers from options, else prompts, else defaults.

    Raises CommandFailed with every invalid answer.
    """
    given_as_options = {key: text for key, text in flags.items() if text is not None}
    answers = dict(defaults) | given_as_options
    if output.can_prompt and not yes:
        output.info(f"{clone.name}: press Enter to accept the default in brackets.")
        for question in QUESTIONS:
            if question.key in given_as_options or not questions.applies(question, answers):
                continue
            default = answers[question.key]
            if question.key == "region" and before is None:
                default = questions.suggest_region(answers)
            answers[question.key] = _ask(output, _adapt_to_clone(question, clone, before, answers), default)
    elif "region" not in given_as_options and before is None:
        answers["region"] = questions.suggest_region(answers)
    invalid = [
        *questions.list_problems(answers),
        *_find_unusable_cluster(flags, answers),
        *_find_changed_origin(before, answers),
    ]
    if invalid:
        lines = "\n".join(f"  --{key.replace('_', '-')}: {why}" for key, why in invalid)
        details = [{"key": key, "message": why} for key, why in invalid]
        hint = "Correct these; nothing was written"
        raise CommandFailed("INIT-ANSWER", f"invalid answers:\n{lines}", hint, details=details)
    return answers


def _find_unusable_cluster(flags: Mapping[str, str | None], answers: Answers) -> Iterator[tuple[str, str]]:
    """Yield a problem if a cluster is given without its environment: a new one would be created instead."""
    cluster = flags.get("cluster")
    is_used = questions.uses_existing_cluster(answers) or questions.has_tables_at_confluent(answers)
    if cluster not in (None, questions.NEW) and not is_used:
        yield "cluster", "needs --environment and --environment-name, and no --tables in Glue"


def _find_changed_origin(before: Deployment | None, answers: Answers) -> Iterator[tuple[str, str]]:
    """Yield a problem if a file that creates its cluster would name existing tables, or the other way
    round.
    """
    if before is None:
        return
    if questions.has_tables(answers) != (before.source is not None):
        what = "creates its own cluster" if before.confluent else "reads tables that exist"
        yield "tables", f"the file {what}, and can't become the other kind. Choose another --stage"
    elif before.source:
        at_confluent = before.source.catalog is not None
        if questions.has_tables_at_confluent(answers) != at_confluent:
            what = "in Confluent's storage" if at_confluent else "in Glue"
            yield (
                "tables",
                f"the file reads tables {what}, and can't become the other kind. Choose another --stage",
            )
    elif before.confluent:
        is_shared = questions.uses_existing_cluster(answers)
        if is_shared != before.uses_existing_cluster:
            what = (
                "names a cluster that exists" if before.uses_existing_cluster else "creates its own cluster"
            )
            yield "cluster", f"the file {what}, and can't become the other kind. Choose another --stage"


def _has_topics(answers: Answers) -> bool:
    """Return whether the topics exist, so that `lakeferry topics import` can write their schemas."""
    return questions.has_tables(answers) or questions.uses_existing_cluster(answers)


def _adapt_to_clone(
    question: Question, clone: Clone, before: Deployment | None, answers: Answers
) -> Question:
    """Return the question about topics with a check that each new topic has a schema, which one that
    exists doesn't need yet; any other question as it is.
    """
    if question.key != "topics":
        return question
    existing = before.topics if before else []
    names = {topic.name for topic in existing}

    def check_topics(text: str) -> str | None:
        if problem := question.check(text):
            return problem
        if text in (questions.EXAMPLE, questions.KEEP) or _has_topics(answers):
            return None
        files = {
            name: clone.project / "topics" / f"{name}.avsc"
            for name in questions.split_names(text)
            if name not in names
        }
        missing = [f"project/topics/{name}.avsc" for name, file in files.items() if not file.is_file()]
        if not missing:
            return None
        return f"there is no {' and no '.join(missing)}: the Avro schema of the topic"

    return attrs.evolve(question, check=check_topics)


def _ask(output: Output, question: Question, default: str) -> str:
    answer = default
    for _ in range(_TRIES):
        answer = output.ask(question.text, default)
        if not (problem := question.check(answer)):
            break
        output.warn(f"  {problem}")
    return answer


def _confirm(output: Output, clone: Clone, difference: str, *, yes: bool) -> bool:
    """Show the difference and ask whether to write it; --yes skips the question.

    Raises CommandFailed if it can't be asked.
    """
    output.print(difference)
    removed = [line[1:] for line in difference.splitlines() if line.startswith("-")]
    comments = [line for line in removed if line.lstrip().startswith("#")]
    if comments:
        output.warn(f"! {len(comments)} comment lines would be removed from {clone.name}")
    if exports := re.findall(r'^-\s*contract\s*=\s*"([^"]+)"', difference, re.MULTILINE):
        output.warn(f"! exports would be removed from {clone.name}: {', '.join(exports)}")
    if yes:
        return True
    if output.can_prompt:
        return output.ask(f"Write this to {clone.name}? yes or no", "no").lower() in ("y", "yes")
    message = f"{clone.name} exists, and the answers change it"
    raise CommandFailed("INIT-EXISTS", message, details={"diff": difference})


def _report(
    output: Output, clone: Clone, deployment: Deployment, *, written: bool, difference: str
) -> dict[str, Any]:
    state = "written" if written else "unchanged"
    if difference and not written:
        state = _NOT_WRITTEN
    output.print(f"{clone.name}: {state}")
    if state == _NOT_WRITTEN:
        return {
            "stage": clone.stage,
            "file": clone.name,
            "written": False,
            "diff": difference,
            "not_stored": [],
            "next": [],
        }
    addresses = set(deployment.alerts.engineers)
    for export in deployment.exports:
        addresses.update(export.recipients)
    for address in sorted(addresses):
        if address.endswith("@example.com"):
            output.warn(f"! {address} is an example: mails to it are not delivered")
    vendors = []
    secrets = []
    if deployment.confluent:
        vendors.append("confluent")
        secrets.append(deployment.confluent.cloud_key_secret)
    if deployment.snowflake and deployment.uses_snowflake:
        vendors.append("snowflake")
        secrets.append(deployment.snowflake.key_secret)
    if deployment.source:
        secrets += deployment.source.brought_keys.values()
    if secrets:
        output.print(
            "The keys themselves are not in this file. Store them in Secrets Manager as "
            f"{' and '.join(secrets)}."
        )
    stores = [f"secrets set {vendor}" for vendor in vendors]
    imports = ["topics import"] if _find_topics_to_import(deployment) else []
    commands = [*stores, *imports, "doctor", "plan", "deploy"]
    following = [f"{command} --stage {clone.stage}" for command in commands]
    output.print("Next: " + "\n      ".join(f"{find_program_name()} {command}" for command in following))
    return {
        "stage": clone.stage,
        "file": clone.name,
        "written": written,
        "diff": difference,
        "not_stored": secrets,
        "next": following,
    }
