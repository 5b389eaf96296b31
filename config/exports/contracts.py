"""Read export contracts: those in project/exports/ by name, and all others by the path of their file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import cast

import attrs

from config import toml_model
from config.exports.contract import Contract
from config.exports.contract_rules import RULES
from config.toml_model import BadFile, Rule


def parse(text: str, *, name: str, more_rules: tuple[Rule[Contract], ...] = ()) -> Contract:
    """Parse a contract. `name` identifies it in messages. Raises BadFile with every mistake in `text`."""
    contract = toml_model.read(Contract, text, (*RULES, *more_rules), name=name)
    return attrs.evolve(contract, sha256=hashlib.sha256(text.encode()).hexdigest())


def load(name_or_path: str) -> Contract:
    """Return a contract by its name in project/exports/ or by the path of a .toml file. Raises BadFile."""
    if name_or_path.endswith(".toml"):
        text = toml_model.read_text(Path(name_or_path), name_or_path)
        path = name_or_path
    else:
        text = _read_shipped_text(name_or_path)
        path = f"project/exports/{name_or_path}.toml"
    return parse(text, name=path, more_rules=name_rules(Path(path)))


def load_all() -> tuple[list[Contract], list[str]]:
    """Return the contracts in project/exports/, and the names of those with mistakes."""
    loaded = []
    broken = []
    for name in names():
        try:
            loaded.append(load(name))
        except BadFile:
            broken.append(name)
    return loaded, broken


def name_rules(path: Path) -> tuple[Rule[Contract], ...]:
    """Return the rule that a contract in project/exports/ has its file's name; other folders have no such
    rule.

    The job is named after the file, and what it publishes after the contract.
    """
    if path.resolve().parent.name != "exports":
        return ()

    def check_name(contract: Contract) -> Iterator[tuple[str, str]]:
        if contract.name != path.stem:
            yield (
                "name",
                f'{contract.name} is not the name of the file. Set name = "{path.stem}", or rename the file',
            )

    return (check_name,)


def names() -> list[str]:
    """Return the names of the contracts in project/exports/: those that ship with Lakeferry, and the user's
    own.
    """
    files = _find_folder().iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def _read_shipped_text(name: str) -> str:
    if name not in names():
        shipped_names = ", ".join(names())
        message = (
            f"no export of this name. project/exports/ has: {shipped_names}. Commands also take the path "
            "of a .toml file"
        )
        raise BadFile(name, [toml_model.Problem(0, "", message)])
    return _find_folder().joinpath(f"{name}.toml").read_text(encoding="utf-8")


def _find_folder() -> Path:
    """Return project/exports/.

    It is beside this package in a checkout and in the assets. In a zip, it is a `zipfile.Path`.
    """
    return cast("Path", resources.files("config")).parent / "project" / "exports"
