"""The little Markdown that the generated pages need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Stands at the top of each generated page.
NOTICE = "<!-- Made by `python -m tools.docs`. Change the code, not this page. -->"


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", NOTICE, *(part.strip("\n") for part in parts)]) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """As code, also inside a table; empty text stays empty."""
    return f"`{text}`" if text else ""


def block(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
