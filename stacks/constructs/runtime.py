"""What all functions and jobs of an app have in common, whoever describes it: a deployment file, or a caller
of the construct library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
from aws_cdk import Token

from config.deployments import validation
from config.deployments.account_model import Network
from config.deployments.model import Aws
from config.deployments.secret_patterns import find_secrets
from config.deployments.shared_rules import list_network_problems
from config.toml_model import Form, find_wrong_values

_AWS: Final = attrs.fields_dict(Aws)


def _default(name: str) -> Any:
    """Return the default of the deployment file's [aws], so that there is one."""
    return _AWS[name].default


class BadProps(ValueError):
    """Props that a construct can't use. The message says what to do."""


def refuse(problems: Iterable[str], path: str = "") -> None:
    """Raise BadProps with all problems, if there are any. `path` is that of the construct."""
    listed = "; ".join(problems)
    if listed:
        raise BadProps(f"{path}: {listed}" if path else listed)


def list_form_problems(**values: tuple[Form, str | None]) -> Iterator[str]:
    """Yield what is wrong with props that have no other form, and with those that look like a secret.

    Tokens, which are not known yet, have any form.
    """
    for prop, (form, value) in values.items():
        if value is None or Token.is_unresolved(value):
            continue
        if secret := next(find_secrets(value, names_only=True), None):
            yield f"{prop}: this looks like {secret[1]}. Put it into Secrets Manager, and give its name here"
        elif problem := form.problem(value):
            yield f"{prop}: {problem}"


def require_forms(**values: tuple[Form, str | None]) -> None:
    """Raise BadProps that names all props without their form."""
    refuse(list_form_problems(**values))


def list_setting_problems(model: type[Any], values: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return what is wrong with props that are settings of the deployment file too. `prefix` begins their
    names.
    """
    known = {name: _drop_tokens(value) for name, value in values.items()}
    return [f"{prefix}{name}: {problem}" for name, problem in find_wrong_values(model, known)]


def _drop_tokens(value: Any) -> Any:
    """Return the value without what is not known yet."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if not _is_token(item)}
    if isinstance(value, list):
        return [item for item in value if not _is_token(item)]
    return None if _is_token(value) else value


def _is_token(value: Any) -> bool:
    return isinstance(value, str | int) and Token.is_unresolved(value)


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
        problems = [
            *list_form_problems(
                project=(validation.NAME, self.project),
                stage=(validation.STAGE, self.stage),
                alarm_topic_arn=(validation.SNS_TOPIC, self.alarm_topic_arn),
                secrets_key_arn=(validation.KMS_KEY, self.secrets_key_arn),
                logs_key_arn=(validation.KMS_KEY, self.logs_key_arn),
            ),
            *list_setting_problems(Aws, attrs.asdict(self, recurse=False)),
        ]
        if self.network:
            given = attrs.asdict(self.network, recurse=False)
            problems += list_setting_problems(Network, given, "network.")
        # Its values are lists and maps that rules can look into, unless they have another type.
        if self.network and not problems:
            problems += [f"network.{key}: {text}" for key, text in list_network_problems(self.network, None)]
        refuse(problems)

    @property
    def prefix(self) -> str:
        return f"{self.project}-{self.stage}"

    @property
    def proxy(self) -> str:
        """Return the address of the proxy through which vendors are called, "" if there is none."""
        return (self.network.proxy or "") if self.network else ""
