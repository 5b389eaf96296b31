"""Build the code assets: one folder for all functions, one zip for the job. It needs no Docker, and builds
are reproducible.

The folder of a build has a hash of all its inputs in its name, so an existing build is used again, without
the network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from glue_jobs.platform import CODE, NOT_SHIPPED

ROOT: Final = Path(__file__).resolve().parents[1]
BUILD: Final = ROOT / "build"
_LAMBDA_LOCK: Final = "lambdas/requirements.txt"
_GLUE_LOCK: Final = "glue_jobs/requirements.txt"
_EXPORTS: Final = "project/exports"
_LAMBDA_SOURCES: Final = ("lambdas", "config", _EXPORTS)
_GLUE_CODE: Final = ("glue_jobs", "config")
_GLUE_SOURCES: Final = (*_GLUE_CODE, _EXPORTS)
#: Code, and the exports' contracts.
_SHIPPED: Final = (*CODE, ".toml")
_GLUE: Final = "glue"
#: Number of builds of each asset that are kept.
_KEPT: Final = 6
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class BuildFailed(Exception):
    """An asset could not be built. The message ends with the tool's output."""


@attrs.frozen
class Platform:
    """The platform of the functions, as uv names it. If both are "", it is this machine."""

    system: str
    python: str

    @property
    def options(self) -> list[str]:
        if not self.system:
            return ["--python", sys.executable]
        return ["--python-platform", self.system, "--python-version", self.python]


LOCAL: Final = Platform("", "")


def aws(python: str) -> Platform:
    """Return the platform of Lambda on Graviton with this version of Python."""
    return Platform("aarch64-manylinux2014", python)


def build_lambda_folder(platform: Platform, build: Path = BUILD) -> Path:
    """Return the folder with all functions' code and packages. Raises BuildFailed."""
    return _build_asset("lambda", _LAMBDA_LOCK, _list_files(_LAMBDA_SOURCES), platform, build)


def build_glue_zip(build: Path = BUILD, contracts: Mapping[str, Path] | None = None) -> Path:
    """Return the zip with the job's code and the packages that Glue doesn't have. Raises BuildFailed.

    `contracts` has the files of contracts by name, which then ship in place of those of project/exports/.
    """
    files = _list_files(_GLUE_SOURCES if contracts is None else _GLUE_CODE)
    for name, file in sorted((contracts or {}).items()):
        files[f"{_EXPORTS}/{name}.toml"] = file
    # Each export of an app has a zip of its own, so that none takes the place of another's.
    asset = "_".join((_GLUE, *sorted(contracts or {})))
    return _build_asset(asset, _GLUE_LOCK, files, LOCAL, build) / "lakeferry.zip"


def locate_glue_script() -> Path:
    return ROOT / "glue_jobs" / "export.py"


def _build_asset(asset: str, lock: str, files: Mapping[str, Path], platform: Platform, build: Path) -> Path:
    """Return the folder of an asset, built unless it exists."""
    target = build / f"{asset}-{_digest(lock, files, platform)}"
    if target.exists():
        return target
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as scratch:
        folder = Path(scratch) / "asset"
        _install(lock, folder, platform)
        for path, file in files.items():
            copy = folder / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        content = _zip_folder(folder) if asset.startswith(_GLUE) else folder
        _publish(content, target)
    return target


def _install(lock: str, folder: Path, platform: Platform) -> None:
    """Install wheels whose hashes are in the lock file, without files that differ between builds."""
    uv = Path(sys.executable).with_name("uv")
    command = [
        str(uv if uv.exists() else "uv"),
        "pip",
        "install",
        "--quiet",
        "--target",
        str(folder),
        *platform.options,
    ]
    command += ["--only-binary", ":all:", "--require-hashes", "--no-deps", "--requirement", str(ROOT / lock)]
    environment = {
        name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")
    }
    try:
        answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    except OSError as error:
        raise BuildFailed(f"uv can't be run ({error.strerror}). `make setup` installs it") from None
    if answer.returncode:
        raise BuildFailed(f"{lock} could not be installed: {answer.stderr.strip()[-600:]}")
    for name in ("bin", ".lock"):
        _remove(folder / name)
    for record in folder.glob("*.dist-info"):
        for name in ("RECORD", "WHEEL", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"):
            _remove(record / name)


def _remove(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


def _list_files(sources: tuple[str, ...]) -> dict[str, Path]:
    """Return Lakeferry's own files that ship by their path in the asset, sorted."""
    files: list[Path] = []
    for source in sources:
        files += (ROOT / source).rglob("*")
    paths = {file.relative_to(ROOT).as_posix(): file for file in sorted(files)}
    return {
        path: file
        for path, file in paths.items()
        if file.suffix in _SHIPPED and not path.startswith(NOT_SHIPPED) and "__pycache__" not in file.parts
    }


def _zip_folder(folder: Path) -> Path:
    """Return a folder with a zip of `folder` that is always the same: sorted, with one time and mode, not
    compressed.

    Compiled code is left out: Python loads none from a zip. MarkupSafe, the only package with some, works
    without it.
    """
    target = folder.with_name("zipped")
    target.mkdir()
    with zipfile.ZipFile(target / "lakeferry.zip", "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
            if file.is_file() and file.suffix not in (".so", ".pyd") and file.stem != "_speedups":
                entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), _EPOCH)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    return target


def _publish(built: Path, target: Path) -> None:
    """Move a build to its final name and remove old builds.

    Another process may have made the same build meanwhile.
    """
    try:
        built.rename(target)
    except OSError:
        if not target.exists():
            raise
    earlier = sorted(
        target.parent.glob(f"{target.name.partition('-')[0]}-*"), key=lambda folder: folder.stat().st_mtime
    )
    for old in earlier[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def _digest(lock: str, files: Mapping[str, Path], platform: Platform) -> str:
    digest = hashlib.sha256(f"{platform.system}/{platform.python}".encode())
    inputs = {lock: ROOT / lock, "stacks/assets.py": Path(__file__), **files}
    for path, file in inputs.items():
        digest.update(f"{path}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
