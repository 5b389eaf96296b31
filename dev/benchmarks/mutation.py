"""`python -m dev.benchmarks.mutation --seed 17 --count 500`: changes one detail of the product at a time and
runs its tests.

A change that no test notices, a survivor, shows behaviour that no test checks. The operators are those of
cosmic-ray, and a few more in `mutation_operators`. cosmic-ray's own runner has one test command for all
modules; here each module has its own tests (`SELECTIONS` in `mutation_tests`) in two lines: first those that
take seconds, then, for survivors, those that take minutes.

Tests run in a copy of the tree, below build/mutation/. The sample and its results are written after each run
of tests to results/mutation-<seed>.json, so the same command continues where it was stopped. It tries a
survivor again once its tests have changed. Survivors that no test can notice are in
mutation_equivalents.toml, with the reason. Writes results/mutation-<seed>.md.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs
import cattrs

from dev.benchmarks.mutation_operators import Change, build_change, list_options
from dev.benchmarks.mutation_tests import SELECTIONS

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "dev" / "benchmarks" / "results"
EQUIVALENTS: Final = ROOT / "dev" / "benchmarks" / "mutation_equivalents.toml"
_BUILD: Final = ROOT / "build" / "mutation"
_TREE: Final = _BUILD / "tree"
KILLED = "killed"
SURVIVED = "survived"
GONE = "gone"
EQUIVALENT = "equivalent"
WAITING = "waiting"
#: Pytest's exit codes for a file that it can't find, and for one without tests. A mutant that prevents the
#: import of conftest.py has the first, and is killed by it.
_NO_TESTS: Final = (4, 5)
#: Imported once, before the processes that run tests are forked: the imports take longer than many of the
#: tests.
_PRELOADED: Final = (
    "pytest",
    "hypothesis",
    "boto3",
    "botocore.session",
    "cattrs",
    "requests",
    "pyarrow.parquet",
    "cryptography.x509",
)
_WALL_SECONDS: Final = 1200


@attrs.define
class Mutant:
    """`stamps` has hashes of the tests that it survived: of those of the first line, then of those of the
    second.
    """

    path: str
    change: Change
    state: str = WAITING
    stamps: list[str] = attrs.field(factory=list)

    @property
    def lines(self) -> tuple[str, str]:
        return "\n".join(map(str.strip, self.change.before)), "\n".join(map(str.strip, self.change.after))


@attrs.define
class Campaign:
    """A sample and its results.

    `seconds` has the processor time that tests take without a change, by their stamp.
    """

    commit: str
    mutants: list[Mutant] = attrs.field(factory=list)
    seconds: dict[str, float] = attrs.field(factory=dict)

    def save(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        one_line_each = json.dumps(cattrs.unstructure(self)).replace(', {"path"', ',\n{"path"')
        partial.write_text(one_line_each + "\n", encoding="utf-8")
        partial.replace(file)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.benchmarks.mutation", description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=500, help="mutants in the sample")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="stop after so long")
    parser.add_argument(
        "--line", type=int, choices=(1, 2), default=2, help="1: only the tests that take seconds"
    )
    parser.add_argument(
        "--only", nargs="*", default=[], metavar="PART", help="modules whose path contains one of these"
    )
    options = parser.parse_args(arguments)
    modules = [path for path in SELECTIONS if not options.only or any(part in path for part in options.only)]
    name = "-".join(["mutation", str(options.seed), *options.only]).replace("/", ".")
    file = (_BUILD if options.only else RESULTS) / f"{name}.json"
    campaign = _load_campaign(file, options.seed, options.count, modules)
    tests = Tests(campaign.seconds, until=time.monotonic() + options.minutes * 60)
    equivalents = _read_equivalents()
    # Equivalent mutants are not tried again: none of their tests fails, so they take the longest.
    undecided = [
        mutant
        for mutant in campaign.mutants
        if mutant.state != SURVIVED or (mutant.path, *mutant.lines) not in equivalents
    ]
    try:
        for line, mutant in sorted(itertools.product(range(options.line), undecided), key=_order_key):
            if mutant.state in (WAITING, SURVIVED) and tests.try_on(mutant, line):
                campaign.save(file)
    except TimeoutError:
        print("stopped; the same command continues", flush=True)
    command = shlex.join(
        [
            "--seed",
            str(options.seed),
            "--count",
            str(options.count),
            *(["--only", *options.only] if options.only else []),
        ]
    )
    result = file.with_suffix(".md")
    result.write_text(page(campaign, command, equivalents), encoding="utf-8")
    print(f"see {result.relative_to(ROOT)}")
    return 0


def _order_key(pair: tuple[int, Mutant]) -> tuple[bool, int]:
    """Return a sort key. Tests that need Spark take the longest, so they come last."""
    line, mutant = pair
    return any("spark/" in tests or "faults/" in tests for tests in SELECTIONS[mutant.path][: line + 1]), line


def _load_campaign(file: Path, seed: int, count: int, modules: Sequence[str]) -> Campaign:
    """Return the campaign as far as it has come. A larger count than before draws more."""
    campaign = (
        cattrs.structure(json.loads(file.read_text(encoding="utf-8")), Campaign)
        if file.exists()
        else Campaign(_read_commit())
    )
    drawn_before = {(mutant.path, mutant.change) for mutant in campaign.mutants}
    # A few small modules may not have as many different changes.
    for drawn in itertools.islice(_draw(random.Random(f"{seed} {len(drawn_before)}"), modules), 20 * count):
        if len(campaign.mutants) >= count:
            break
        if drawn not in drawn_before:
            drawn_before.add(drawn)
            campaign.mutants.append(Mutant(*drawn))
    campaign.save(file)
    return campaign


def _draw(rng: random.Random, modules: Sequence[str]) -> Iterator[tuple[str, Change]]:
    """Yield random changes: of a module, weighted by length; then of a kind, all as likely; then one of that
    kind.
    """
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for path in modules}
    offered = functools.cache(lambda path: list_options(sources[path]))
    lengths = [len(source.splitlines()) for source in sources.values()]
    while True:
        (path,) = rng.choices(modules, lengths)
        kind = rng.choice(sorted(offered(path)))
        if (drawn := build_change(kind, sources[path], rng.choice(offered(path)[kind]))) is not None:
            yield path, drawn


def _read_commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()


class Tests:
    """Runs tests in a copy of the tree, as it is now."""

    def __init__(self, seconds: dict[str, float], until: float) -> None:
        self._seconds = seconds
        self._until = until
        self._edits = 0
        _copy_tree()
        for name in _PRELOADED:
            __import__(name)

    def try_on(self, mutant: Mutant, line: int) -> bool:
        """Run a line of the mutant's tests, unless it has survived these already.

        Return whether there is a new result.
        """
        selection = SELECTIONS[mutant.path][line]
        stamp = _hash_tests(selection)
        if not selection or (len(mutant.stamps) > line and mutant.stamps[line] == stamp):
            return False
        original = (_TREE / mutant.path).read_text(encoding="utf-8")
        mutated = mutant.change.apply(original)
        if mutated is None:
            mutant.state = GONE
            return True
        limit = self._limit(selection, stamp)
        self._write(mutant.path, mutated)
        try:
            mutant.state = KILLED if self._run(selection, limit) else SURVIVED
        finally:
            self._write(mutant.path, original)
        mutant.stamps[line:] = [stamp]
        print(f"{mutant.state:9}{mutant.path}:{mutant.change.line}  {mutant.lines[1][:100]!r}", flush=True)
        return True

    def _limit(self, selection: str, stamp: str) -> int:
        """Return the processor seconds that a run may take.

        Raises RuntimeError for tests that fail without a change.
        """
        if stamp not in self._seconds:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            code = self._run(selection, _WALL_SECONDS)
            if code in _NO_TESTS:
                raise RuntimeError(f"no such tests: {selection}; see {_BUILD / 'tests.log'}")
            if code:
                raise RuntimeError(
                    f"these fail on the unchanged tree: {selection}; see {_BUILD / 'tests.log'}"
                )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self._seconds[stamp] = round(after.ru_utime - before.ru_utime, 1)
            print(f"{self._seconds[stamp]:.0f} s for {selection}", flush=True)
        return int(3 * self._seconds[stamp]) + 20

    def _run(self, selection: str, limit: int) -> int:
        """Return pytest's exit code. Raises TimeoutError when this campaign's time is over."""
        if time.monotonic() > self._until:
            raise TimeoutError
        child = os.fork()
        if not child:
            _run_tests(selection, limit)
        ends = time.monotonic() + _WALL_SECONDS
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < ends:
            time.sleep(0.1)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it started and did not end
        return os.waitstatus_to_exitcode(ended[1] if ended[0] else os.waitpid(child, 0)[1])

    def _write(self, path: str, text: str) -> None:
        """Write with a time that no earlier version had: Python reuses byte code if the source has the same
        second and length.
        """
        self._edits += 1
        file = _TREE / path
        file.write_text(text, encoding="utf-8")
        os.utime(file, (1_000_000_000 + self._edits,) * 2)


def _run_tests(selection: str, limit: int) -> None:
    """Run tests in this forked process, which ends with pytest's exit code."""
    code = 3
    try:
        os.setsid()
        with (_BUILD / "tests.log").open("wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.chdir(_TREE)
        os.environ["PYTHONPATH"] = str(_TREE)
        sys.path[:] = [str(_TREE), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.startswith("dev.benchmarks")]:
            del sys.modules[name]
        import pytest  # noqa: PLC0415

        preloaded = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        files = [f"tests/{name}.py" for name in selection.split()]
        code = int(pytest.main(["-x", "-q", "-m", "not deep", "-p", "no:cacheprovider", *preloaded, *files]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _copy_tree() -> None:
    shutil.rmtree(_TREE, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (_TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, _TREE / name)
    for name in (".venv", ".venv-aws", ".venv-flink", ".jars"):
        (_TREE / name).symlink_to(ROOT / name)


def _hash_tests(selection: str) -> str:
    texts = [(_TREE / f"tests/{name}.py").read_bytes() for name in selection.split()]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


def _read_equivalents() -> dict[tuple[str, str, str], str]:
    """Return why each change that no test can notice has no effect, by file and stripped lines before and
    after.
    """
    listed: list[dict[str, Any]] = tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8")).get(
        "equivalent", []
    )
    return {
        (entry["file"], entry["before"].strip(), entry["after"].strip()): entry["why"] for entry in listed
    }


def page(campaign: Campaign, command: str, equivalents: dict[tuple[str, str, str], str]) -> str:
    """Return the page of results."""
    why = {id(mutant): equivalents.get((mutant.path, *mutant.lines), "") for mutant in campaign.mutants}
    state = {
        id(mutant): EQUIVALENT if mutant.state == SURVIVED and why[id(mutant)] else mutant.state
        for mutant in campaign.mutants
    }
    totals = Counter(state.values())
    decided = totals[KILLED] + totals[SURVIVED]
    share = f"{100 * totals[KILLED] / decided:.1f} %" if decided else "none"
    out = [
        "# Mutation testing",
        "",
        f"`python -m dev.benchmarks.mutation {command}`; drawn at commit {campaign.commit}, tests of "
        f"commit {_read_commit()}.",
        "",
        f"{decided + totals[EQUIVALENT]} mutants tried: {totals[KILLED]} killed, {totals[EQUIVALENT]} "
        f"equivalent, {totals[SURVIVED]} survived. **{share}** of those that aren't equivalent were "
        f"killed. {totals[GONE]} more changed code that has been deleted or rewritten since, "
        f"{totals[WAITING]} were not tried.",
        "",
        "| module | mutants | killed | equivalent | survived |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for path in sorted({mutant.path for mutant in campaign.mutants}):
        counts = Counter(state[id(mutant)] for mutant in campaign.mutants if mutant.path == path)
        tried = counts[KILLED] + counts[EQUIVALENT] + counts[SURVIVED]
        out.append(f"| {path} | {tried} | {counts[KILLED]} | {counts[EQUIVALENT]} | {counts[SURVIVED]} |")
    for title, section_state in (("Survivors", SURVIVED), ("Equivalent", EQUIVALENT)):
        out += ["", f"## {title}"]
        for mutant in campaign.mutants:
            if state[id(mutant)] == section_state:
                removed = [f"- {text}" for text in mutant.change.before]
                added = [f"+ {text}" for text in mutant.change.after]
                out += [
                    "",
                    f"{mutant.path}:{mutant.change.line} {why[id(mutant)]}".strip(),
                    "",
                    "```diff",
                    *removed,
                    *added,
                    "```",
                ]
    return "\n".join([*out, ""])


if __name__ == "__main__":
    sys.exit(main())
