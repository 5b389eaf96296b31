"""Where stock MiniStack is laxer than AWS, or slower than our work can bear: one module each.

Of two patches on one function the later one in the list stands in front. A later piece of work adds a module and a
line here, and a probe to tests/contract/test_patches.py, which also says when stock MiniStack has caught up.
"""

from __future__ import annotations

from typing import Final

from simulators.aws.hooks import Patch
from simulators.aws.patches import (
    alarm_states,
    athena,
    cfn_buckets,
    cfn_custom_resources,
    cfn_delete_order,
    cfn_failed_create,
    cfn_in_progress,
    cfn_properties,
    cfn_secrets,
    cfn_types,
    event_targets,
    glue_catalog,
    glue_permissions,
    glue_runs,
    lambda_ahead,
    lambda_async,
    lambda_interpreter,
    lambda_logs,
    metric_namespace,
    s3_bodies,
    s3_limits,
    s3_managed_key,
    s3_missing_key,
    s3_multipart,
    scheduler_clock,
    secrets_rotation,
    secrets_versions,
    secure_transport,
    sns_keys,
    sns_mail,
    step_functions,
)

PATCHES: Final[tuple[Patch, ...]] = (
    s3_bodies.PATCH,
    s3_multipart.PATCH,
    s3_limits.PATCH,
    s3_managed_key.PATCH,
    s3_missing_key.PATCH,
    secure_transport.PATCH,
    metric_namespace.PATCH,
    alarm_states.PATCH,
    glue_catalog.PATCH,
    glue_permissions.PATCH,
    secrets_versions.PATCH,
    secrets_rotation.PATCH,
    lambda_interpreter.PATCH,
    step_functions.PATCH,
    lambda_ahead.PATCH,
    cfn_secrets.PATCH,
    cfn_types.PATCH,
    cfn_delete_order.PATCH,
    cfn_failed_create.PATCH,
    cfn_in_progress.PATCH,
    cfn_custom_resources.PATCH,
    cfn_properties.PATCH,
    *athena.PATCHES,
    cfn_buckets.PATCH,
    sns_mail.PATCH,
    sns_keys.PATCH,
    glue_runs.PATCH,
    scheduler_clock.PATCH,
    event_targets.PATCH,
    lambda_async.PATCH,
    lambda_logs.PATCH,
)
