"""The assemblies for all tests of templates, each synthesised once: of both shipped deployments, of one with
exports only, and of one on an existing cluster.
"""

from __future__ import annotations

import pytest
from aws_cdk import App, Stack

from tests.support import assembly_kit, construct_kit, shipped


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory):
    """Return the assemblies by stage."""
    deployments = {stage: shipped.load(stage) for stage in ("dev", "prod")}
    deployments["existing"] = shipped.load_existing()
    deployments["shared"] = shipped.load_existing_cluster()
    return {
        stage: assembly_kit.synthesise(loaded, tmp_path_factory.mktemp(stage), with_assets=True)
        for stage, loaded in deployments.items()
    }


@pytest.fixture(scope="session")
def dev(assemblies):
    return assemblies["dev"]


@pytest.fixture(scope="session")
def prod(assemblies):
    return assemblies["prod"]


@pytest.fixture(scope="session")
def existing(assemblies):
    """Return the assembly of exports over tables that exist."""
    return assemblies["existing"]


@pytest.fixture(scope="session")
def shared(assemblies):
    """Return the assembly of a deployment over topics of somebody else's cluster."""
    return assemblies["shared"]


@pytest.fixture(params=["dev", "prod"])
def assembly(request, assemblies):
    return assemblies[request.param]


@pytest.fixture
def stack():
    """Return an empty stack of an app that uses the construct library, as `runtime` and `cluster` do."""
    return Stack(App(), "App")


@pytest.fixture
def runtime():
    return construct_kit.describe_runtime()


@pytest.fixture
def cluster(stack, runtime):
    return construct_kit.open_cluster(stack, runtime)
