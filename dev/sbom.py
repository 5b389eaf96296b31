"""Write software bills of materials: `make sbom` writes one CycloneDX document for each deployed asset.

They list the packages in the lock files that the assets are installed from, which are exactly those that
ship.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from stacks import assets

FOLDER: Final = assets.BUILD / "sbom"
_LINUX: Final = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}


@attrs.frozen
class Asset:
    """A deployed asset.

    `environment` has the values of dependency markers (PEP 508) on the asset's platform.
    """

    name: str
    lock: Path
    environment: Mapping[str, str]


def functions(python: str) -> Asset:
    """Return the functions' asset for a version of Python, such as 3.11."""
    version = {"python_version": python, "python_full_version": f"{python}.0"}
    lock = assets.ROOT / "lambdas" / "requirements.txt"
    return Asset("lakeferry-lambda", lock, {**_LINUX, "platform_machine": "aarch64", **version})


GLUE: Final = Asset(
    "lakeferry-glue",
    assets.ROOT / "glue_jobs" / "requirements.txt",
    {**_LINUX, "platform_machine": "x86_64", "python_version": "3.11", "python_full_version": "3.11.0"},
)


def document(asset: Asset) -> str:
    """Return a CycloneDX 1.6 document as JSON."""
    bom = Bom()
    root = bom.metadata.component = Component(
        name=asset.name, type=ComponentType.APPLICATION, bom_ref=asset.name
    )
    parts = [_build_component(requirement) for requirement in requirements(asset)]
    bom.components.update(parts)
    bom.register_dependency(root, parts)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def requirements(asset: Asset) -> Iterator[Requirement]:
    """Yield what the lock file installs on the platform on which the asset runs."""
    for line in asset.lock.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        text = line.partition(" --hash=")[0].strip()
        if text and not text.startswith("#"):
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate(dict(asset.environment)):
                yield requirement


def _build_component(requirement: Requirement) -> Component:
    (version,) = requirement.specifier
    purl = PackageURL("pypi", name=requirement.name.lower(), version=version.version)
    return Component(name=requirement.name, version=version.version, purl=purl, bom_ref=str(purl))


def main() -> None:
    """Write the documents.

    The argument is the stage, whose deployment file names the functions' version of Python.
    """
    deployment = deployment_file.load_stage(sys.argv[1], judge=NOT_JUDGED).deployment
    FOLDER.mkdir(parents=True, exist_ok=True)
    for asset in (functions(deployment.aws.lambda_python), GLUE):
        file = FOLDER / f"{asset.name}.cdx.json"
        file.write_text(document(asset) + "\n", encoding="utf-8")
        sys.stdout.write(f"{file.relative_to(assets.ROOT)}\n")


if __name__ == "__main__":
    main()
