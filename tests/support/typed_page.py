"""A reader of a tutorial who types its commands word for word, on a terminal of the stand-ins."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from lakeferry.rehearsal.harness import talk
from tests.support import docs_reader
from tests.support.deployment_kit import Newcomer

#: The end of a line that the next one continues.
_CONTINUED = "\\\n"


def read_commands(page: Path) -> list[str]:
    """Return the commands of the page's shell snippets, each on one line."""
    lines: list[str] = []
    for fence in docs_reader.fences(page):
        if fence.language == "sh":
            lines += fence.text.replace(_CONTINUED, " ").splitlines()
    return [re.sub(r" +", " ", line) for line in lines if line.strip()]


def read_tables(page: Path, first: str) -> str:
    """Return the first TOML snippet of the page that begins with the table `first`."""
    begins = f"[{first}]"
    return next(
        fence.text
        for fence in docs_reader.fences(page)
        if fence.language == "toml" and fence.text.startswith(begins)
    )


@attrs.define
class Reader:
    """`words` replaces the ids that the page uses as examples with those that the reader has. `files` has the
    content of local files that commands name.
    """

    user: Newcomer
    commands: list[str]
    words: Mapping[str, str] = attrs.field(factory=dict)
    files: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    def fill_in(self, text: str) -> str:
        for example, word in self.words.items():
            text = text.replace(example, word)
        return text

    def skip(self, beginning: str) -> None:
        """Leave out the page's next command, which must begin so."""
        assert self.commands.pop(0).startswith(beginning)

    def type(self, beginning: str, answers: Sequence[tuple[str, str]] = ()) -> str:
        """Type the page's next command, which must begin so, and answer its prompts; return what the terminal
        shows. The command must succeed.
        """
        line = self.commands.pop(0)
        assert line.startswith(beginning), line
        program, *words = shlex.split(self.fill_in(line), comments=True)
        if program == "aws":
            return self._call_aws(*words)
        assert program == "lakeferry", line
        code, shown = talk(words, self._environment, answers, self.user.clone.root)
        assert code == 0, shown
        return shown

    def _call_aws(self, service: str, operation: str, *words: str) -> str:
        """Do what the AWS CLI would do with these words."""
        options = dict(zip(words[::2], words[1::2], strict=True))
        options.pop("--region", None)
        client: Any = self.user.ctx.client(service)
        assert operation == "create-secret"
        file = options["--secret-string"].removeprefix("file://")
        answer = client.create_secret(Name=options["--name"], SecretString=json.dumps(self.files[file]))
        return str(answer["ARN"])

    @property
    def _environment(self) -> dict[str, str]:
        return {**self.user.variables, "PYTHONPATH": str(self.user.clone.root)}
