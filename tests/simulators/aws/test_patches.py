"""Each patch does what AWS does, and is still needed: stock MiniStack still does not."""

from __future__ import annotations

import sys

import pytest
from patch_probes import PROBES, holds_no_object_in_memory, holds_no_version_in_memory
from stack_kit import Stack

from simulators.aws.patches import PATCHES

CASES = [pytest.param(name, probe, id=f"{name}-{probe.__name__}") for name, probes in PROBES.items() for probe in probes]


@pytest.mark.parametrize(("name", "probe"), CASES)
def test_patched_is_as_aws(aws, name, probe):
    _skip_where_memory_is_not_told(probe)
    assert probe(aws)


@pytest.mark.deep  # the version is pinned: only a new pin can change what stock does
@pytest.mark.parametrize(("name", "probe"), CASES)
def test_stock_still_needs_it(stock_aws, name, probe):
    _skip_where_memory_is_not_told(probe)
    assert not probe(stock_aws), f"stock MiniStack now does this: drop it from the patch {name}"


def test_every_patch_has_a_probe():
    assert {patch.name for patch in PATCHES} == {name for name, probes in PROBES.items() if probes}


def test_a_deleted_stacks_secret_frees_its_name(aws):
    """CloudFormation deletes a secret without a recovery window: its default (user guide, DeletionPolicy)."""
    name = "of-a-deleted-stack"
    for _ in range(2):
        stack = Stack(aws, "AWS::SecretsManager::Secret", Name=name, SecretString="value")
        assert aws.secrets.describe_secret(SecretId=name)["ARN"] == stack.resource
        stack.delete()
        with pytest.raises(aws.secrets.exceptions.ResourceNotFoundException):
            aws.secrets.describe_secret(SecretId=name)


def _skip_where_memory_is_not_told(probe):
    if probe in (holds_no_object_in_memory, holds_no_version_in_memory) and sys.platform != "linux":
        pytest.skip("only Linux tells the memory of another process in /proc")
