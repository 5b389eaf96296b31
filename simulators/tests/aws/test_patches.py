"""Each patch does what AWS does, and is still needed: stock MiniStack still does not.

They run when simulators change, when the pin of MiniStack changes, and every night.
"""

import sys

import pytest

from simulators.aws import patches
from simulators.tests.aws.probe_kit import all_probes
from simulators.tests.aws.probes_s3 import holds_no_object_in_memory, holds_no_version_in_memory
from simulators.tests.aws.stack_kit import Stack

PROBES = all_probes()
#: The module of each patch: test ids begin with it, for `-k "stock and glue"`.
MODULE = {
    patch.name: name for name, module in vars(patches).items() for patch in getattr(module, "PATCHES", ())
}
CASES = [
    pytest.param(
        probe,
        id=f"{MODULE.get(name)}-{name}-{probe.__name__}",
        marks=pytest.mark.skipif(
            probe in (holds_no_object_in_memory, holds_no_version_in_memory) and sys.platform != "linux",
            reason="only Linux shows the memory of another process in /proc",
        ),
    )
    for name, probes in PROBES.items()
    for probe in probes
]


@pytest.mark.parametrize("probe", CASES)
def test_patched_does_as_aws(aws, probe):
    assert probe(aws)


@pytest.mark.parametrize("probe", CASES)
def test_stock_still_does_not(stock_aws, probe):
    assert not probe(stock_aws), "stock MiniStack does this now: drop it from the patch"


def test_every_patch_has_a_probe():
    assert {patch.name for patch in patches.PATCHES} == set(PROBES)


def test_every_module_names_the_command_that_shows_stock():
    for name in set(MODULE.values()):
        assert f'-k "stock and {name}"' in vars(patches)[name].__doc__


def test_a_deleted_stacks_secret_frees_its_name(aws):
    """CloudFormation deletes a secret without a recovery window: its default (user guide, DeletionPolicy)."""
    name = "of-a-deleted-stack"
    for _ in range(2):
        stack = Stack(aws, "AWS::SecretsManager::Secret", Name=name, SecretString="value")
        assert aws.secrets.describe_secret(SecretId=name)["ARN"] == stack.resource
        stack.delete()
        with pytest.raises(aws.secrets.exceptions.ResourceNotFoundException):
            aws.secrets.describe_secret(SecretId=name)
