"""What a command promises of the JSON document that it ends with when it is done."""

from __future__ import annotations

import typer

from lakeferry import output
from lakeferry.__main__ import app
from tools.docs.command_line import leaves


def leaf(words):
    """The command of these words, like `export run`."""
    return dict(leaves(typer.main.get_command(app)))[words]


def promised(words):
    return {*output.DOCUMENT, *leaf(words).callback.declared.json_keys}
