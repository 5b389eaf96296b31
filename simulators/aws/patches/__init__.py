"""Patches that make MiniStack behave as AWS does, one module for each service.

A module's docstring has, for each of its patches, AWS's behaviour with its source, and what stock MiniStack does. The probes of
tests/simulators/aws prove both. simulators/aws/upstream/ offers to MiniStack what is of use to others.
"""

from __future__ import annotations

from typing import Final

from simulators.aws.hooks import Patch
from simulators.aws.patches import (
    athena,
    cloudformation,
    cloudformation_types,
    cloudwatch,
    events,
    glue,
    lambda_functions,
    s3,
    s3_bodies,
    secretsmanager,
    sns,
    stepfunctions,
)

#: Of two patches on one function, the later one is called first.
PATCHES: Final[tuple[Patch, ...]] = (
    *s3_bodies.PATCHES,
    *s3.PATCHES,
    *cloudwatch.PATCHES,
    *glue.PATCHES,
    *secretsmanager.PATCHES,
    *lambda_functions.PATCHES,
    *stepfunctions.PATCHES,
    *cloudformation_types.PATCHES,
    *cloudformation.PATCHES,
    *athena.PATCHES,
    *sns.PATCHES,
    *events.PATCHES,
)
