"""What all functions and jobs of an app have in common, whoever describes it: a deployment file, or a caller
of the construct library.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
from aws_cdk import Token

from config.deployments import validation
from config.deployments.account_model import Network
from config.deployments.model import Aws
from config.toml_model import Form

_AWS: Final = attrs.fields_dict(Aws)


def _default(name: str) -> Any:
    """Return the default of the deployment file's [aws], so that there is one."""
    return _AWS[name].default


class BadProps(ValueError):
    """Props that a construct can't use. The message says what to do."""


def require_forms(**values: tuple[Form, str]) -> None:
    """Raise BadProps that names all values without their form. Tokens, which are not known yet, have any."""
    problems = {
        prop: form.problem(value) for prop, (form, value) in values.items() if not Token.is_unresolved(value)
    }
    wrong = [f"{prop}: {problem}" for prop, problem in problems.items() if problem]
    if wrong:
        raise BadProps("; ".join(wrong))


@attrs.frozen(kw_only=True)
class Runtime:
    """`project` and `stage` begin the names of all objects in AWS and at the vendors: two apps in one account
    and region must not have the same.

    `alarm_topic_arn` is the SNS topic that gets all alarms. `secrets_key_arn` and `logs_key_arn` are KMS keys
    that exist; without one, a key is created for secrets, and CloudWatch encrypts logs with its own.
    """

    project: str
    stage: str
    alarm_topic_arn: str
    network: Network | None = None
    secrets_key_arn: str | None = None
    logs_key_arn: str | None = None
    lake_formation: bool = _default("lake_formation")
    log_retention_days: int = _default("log_retention_days")
    lambda_python: str = _default("lambda_python")
    lambda_memory_mb: int = _default("lambda_memory_mb")
    lambda_timeout_seconds: int = _default("lambda_timeout_seconds")
    glue_version: str = _default("glue_version")
    glue_worker_type: str = _default("glue_worker_type")
    glue_workers: int = _default("glue_workers")
    glue_timeout_minutes: int = _default("glue_timeout_minutes")

    def __attrs_post_init__(self) -> None:
        require_forms(project=(validation.NAME, self.project), stage=(validation.STAGE, self.stage))

    @property
    def prefix(self) -> str:
        return f"{self.project}-{self.stage}"

    @property
    def proxy(self) -> str:
        """Return the address of the proxy through which vendors are called, "" if there is none."""
        return (self.network.proxy or "") if self.network else ""
