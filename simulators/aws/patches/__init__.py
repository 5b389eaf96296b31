"""Patches that make MiniStack behave as AWS does, a module or two for each service.

Each module's docstring describes, for each of its patches, AWS's behaviour with its source, and the behaviour
of stock (unmodified) MiniStack. The probes of simulators/tests/aws test both. simulators/aws/upstream/ has
the patches that are offered to MiniStack's maintainers.
"""

from __future__ import annotations

from typing import Final

from simulators.aws.hooks import Patch
from simulators.aws.patches import (
    apigateway,
    athena,
    athena_workgroups,
    cloudformation,
    cloudformation_buckets,
    cloudformation_roles,
    cloudformation_types,
    cloudwatch,
    events,
    glue,
    guardrails,
    iam,
    kms,
    lake_formation,
    lambda_functions,
    logs,
    network,
    s3,
    s3_bodies,
    secretsmanager,
    ses,
    sns,
    stepfunctions,
)

#: Of two patches on one function, the later one is called first.
PATCHES: Final[tuple[Patch, ...]] = (
    *s3_bodies.PATCHES,
    *s3.PATCHES,
    *cloudwatch.PATCHES,
    *guardrails.PATCHES,
    *glue.PATCHES,
    *iam.PATCHES,
    *logs.PATCHES,
    *secretsmanager.PATCHES,
    *lambda_functions.PATCHES,
    *stepfunctions.PATCHES,
    *apigateway.PATCHES,
    *cloudformation_types.PATCHES,
    *cloudformation_buckets.PATCHES,
    *cloudformation.PATCHES,
    *athena_workgroups.PATCHES,
    *athena.PATCHES,
    *sns.PATCHES,
    *ses.PATCHES,
    *events.PATCHES,
    *kms.PATCHES,
    *lake_formation.PATCHES,
    *network.PATCHES,
    *cloudformation_roles.PATCHES,
)
