"""All probes, by patch."""

from __future__ import annotations

import probes_athena
import probes_cloudformation
import probes_cloudformation_types
import probes_cloudwatch
import probes_events
import probes_glue
import probes_lambda
import probes_s3
import probes_secretsmanager
import probes_sns
from probe_kit import PROBES

MODULES = (
    probes_athena,
    probes_cloudformation,
    probes_cloudformation_types,
    probes_cloudwatch,
    probes_events,
    probes_glue,
    probes_lambda,
    probes_s3,
    probes_secretsmanager,
    probes_sns,
)
__all__ = ["MODULES", "PROBES"]
