"""Rules of docs/contributing/architecture.md that no linter knows. Each function returns what breaks one in a
tree.

import-linter checks imports, and ruff complexity and the number of statements; pyproject.toml has the
settings of both.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

FUNCTION_LINES = 60
FILE_LINES = 400
#: Modules that decide which rows a file has. They use no clock and no environment, so that a rerun has the
#: same rows.
ROW_MODULES = tuple(
    f"glue_jobs/{name}.py"
    for name in (
        *(
            "source",
            "rows",
            "columns",
            "aggregate",
            "outcomes",
            "pseudonyms",
            "ranges",
            "expression_guard",
            "event_lines",
        ),
        *("decimals", "event_time", "failing", "measures", "table_fields"),
        *("delivery/csv", "delivery/verify"),
    )
)

#: The top-level packages and modules of the product.
PRODUCT = ("app.py", "config", "stacks", "lambdas", "glue_jobs", "lakeferry")

_IGNORED = (Path(__file__).resolve().parents[2] / ".gitignore").read_text(encoding="utf-8").splitlines()
#: Git ignores generated files. All other files of a checkout are checked, committed or not.
_GENERATED = [".git", *[line.strip("/") for line in _IGNORED if line and not line.startswith("#")]]
_CLOCK = re.compile(
    r"os\.(environ|getenv)|time\.\w+|(datetime|date)\.(now|utcnow|today)|datetime\.datetime\.(now|utcnow)"
)
#: Folders of one person's machine.
_MACHINE_PATH = re.compile(r"(?<![\w.~>}])/(?:work|tmp|root|Users|home/(?!someone\b)\w+)/[\w.-]")
#: Each machine decides where packages come from, so a lock file doesn't say it.
_REGISTRY = re.compile(
    r"\b(?:[\w-]+\.)*(?:pypi|pythonhosted|npmjs|yarnpkg|maven|jfrog|sonatype|anaconda|artifactory)(?:\.[\w-]+)*"
    r"\.(?:org|com|io|net|dev)\b|--(?:extra-)?index-url\s*[= ]\s*\S+"
)


def clocks_in_row_modules(root: Path) -> list[str]:
    problems = []
    for name in ROW_MODULES:
        if (file := root / name).exists():
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and _CLOCK.fullmatch(ast.unparse(node)):
                    problems.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    return problems


def asserts_that_decide(root: Path) -> list[str]:
    """Return asserts of the product that check more than a type.

    CDK starts the app with `python -O`, which has no asserts.
    """
    problems = []
    for file in (file for file in _list_files(root) if file.suffix == ".py"):
        name = file.relative_to(root)
        if name.parts[0] in PRODUCT:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            asserts = (node for node in ast.walk(tree) if isinstance(node, ast.Assert))
            problems += [
                f"{name}:{node.lineno}: {ast.unparse(node)}"
                for node in asserts
                if not _is_type_check(node.test)
            ]
    return problems


def _is_type_check(test: ast.expr) -> bool:
    """Return whether an expression is `isinstance(…)` or `… is not None`, which only tell mypy what a value
    is.
    """
    return bool(re.fullmatch(r"isinstance\(.*\)|[\w.]+ is not None", ast.unparse(test)))


def too_long(root: Path) -> list[str]:
    """Return functions of more than FUNCTION_LINES lines, and files, except tests, of more than
    FILE_LINES.
    """
    problems = []
    for file in (file for file in _list_files(root) if file.suffix == ".py"):
        text = file.read_text(encoding="utf-8")
        name = file.relative_to(root)
        if "tests" not in name.parts[:2] and (lines := text.count("\n")) > FILE_LINES:
            problems.append(f"{name}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    problems.append(f"{name}:{node.lineno}: {node.name} has {lines} lines")
    return problems


def machine_specific(root: Path) -> list[str]:
    """Return lines that name a folder of one machine or the host of a package registry."""
    problems = []
    for file in _list_files(root):
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for pattern in (_MACHINE_PATH, _REGISTRY):
                problems += [
                    f"{file.relative_to(root)}:{number}: {match[0]}" for match in pattern.finditer(line)
                ]
    return problems


def shared_names(root: Path) -> list[str]:
    """Return tests that share a name: pytest imports a module by its name, and takes the second for the
    first.
    """
    seen: dict[str, Path] = {}
    problems = []
    for file in sorted([*(root / "tests").rglob("*.py"), *(root / "simulators" / "tests").rglob("*.py")]):
        if file.name != "conftest.py" and (first := seen.setdefault(file.name, file)) != file:
            problems.append(f"{file.relative_to(root)}: named as {first.relative_to(root)}")
    return problems


def _list_files(root: Path) -> list[Path]:
    kept = [path for path in sorted(root.iterdir()) if not any(path.match(name) for name in _GENERATED)]
    folders = [path for path in kept if path.is_dir() and not (path / "pyvenv.cfg").exists()]
    return [path for path in kept if path.is_file()] + [
        file for folder in folders for file in _list_files(folder)
    ]
