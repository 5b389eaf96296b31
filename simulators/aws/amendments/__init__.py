"""Where stock MiniStack is laxer than AWS, or slower than our work can bear: one module each.

Of two amendments on one function the later one in the list stands in front. A later piece of work adds a module and a
line here, and a probe to tests/contract/test_amendments.py, which also says when stock MiniStack has caught up.
"""

from __future__ import annotations

from typing import Final

from simulators.aws.amendments import (
    alarm_states,
    athena_queries,
    athena_workgroups,
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
from simulators.aws.hooks import Amendment

AMENDMENTS: Final[tuple[Amendment, ...]] = (
    s3_bodies.AMENDMENT,
    s3_multipart.AMENDMENT,
    s3_limits.AMENDMENT,
    s3_managed_key.AMENDMENT,
    s3_missing_key.AMENDMENT,
    secure_transport.AMENDMENT,
    metric_namespace.AMENDMENT,
    alarm_states.AMENDMENT,
    glue_catalog.AMENDMENT,
    glue_permissions.AMENDMENT,
    secrets_versions.AMENDMENT,
    secrets_rotation.AMENDMENT,
    lambda_interpreter.AMENDMENT,
    step_functions.AMENDMENT,
    lambda_ahead.AMENDMENT,
    cfn_secrets.AMENDMENT,
    cfn_types.AMENDMENT,
    cfn_delete_order.AMENDMENT,
    cfn_failed_create.AMENDMENT,
    cfn_in_progress.AMENDMENT,
    cfn_custom_resources.AMENDMENT,
    cfn_properties.AMENDMENT,
    athena_workgroups.AMENDMENT,
    athena_queries.AMENDMENT,
    cfn_buckets.AMENDMENT,
    sns_mail.AMENDMENT,
    sns_keys.AMENDMENT,
    glue_runs.AMENDMENT,
    scheduler_clock.AMENDMENT,
    event_targets.AMENDMENT,
    lambda_async.AMENDMENT,
    lambda_logs.AMENDMENT,
)
