"""Reads which keys the JSON document of a successful command has, as the command declares them."""

from __future__ import annotations

import typer

from dev.docs.command_line import leaves
from lakeferry import output
from lakeferry.__main__ import app


def leaf(words):
    """Return the command with these words, like `export run`."""
    return dict(leaves(typer.main.get_command(app)))[words]


def promised(words):
    return {*output.DOCUMENT, *leaf(words).callback.declared.json_keys}
