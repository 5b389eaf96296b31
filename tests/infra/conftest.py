"""Both shipped deployments, synthesised once for all tests of templates."""

from __future__ import annotations

import pytest

from tests.support import assembly_kit, shipped


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory):
    """Return the assemblies by stage."""
    return {
        stage: assembly_kit.synthesise(shipped.load(stage), tmp_path_factory.mktemp(stage))
        for stage in ("dev", "prod")
    }


@pytest.fixture(scope="session")
def dev(assemblies):
    return assemblies["dev"]


@pytest.fixture(scope="session")
def prod(assemblies):
    return assemblies["prod"]


@pytest.fixture(params=["dev", "prod"])
def assembly(request, assemblies):
    return assemblies[request.param]
