"""Functions that a function's environment names are started along with it, as AWS starts environments ahead of calls.

Stock MiniStack starts each when it is called first, so that the functions of a custom resource start one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from simulators.aws.hooks import Patch, in_background, ministack

PATCH = Patch("lambda_ahead")
_log: Final = logging.getLogger("lakeferry.functions")
Leased = tuple[Any, str]


@PATCH.replaces("ministack.services.lambda_svc", "acquire_worker", "func_name config code_zip qualifier max_concurrency")
def acquire_worker(original: Callable[..., Leased], func_name: str, config: dict[str, Any], *rest: Any, **named: Any) -> Leased:
    leased = original(func_name, config, *rest, **named)
    if leased[1] == "spawn":
        for called in _called(config):
            in_background(_start, called)
    return leased


def _called(config: dict[str, Any]) -> Iterator[str]:
    variables = config.get("Environment", {}).get("Variables", {})
    return (value for value in variables.values() if ":lambda:" in value and value.startswith("arn:"))


def _start(arn: str) -> None:
    """The first call finds it started, or waits until it is. Where it can't be started, that call tells why."""
    record, config, name = ministack("services.lambda_svc")._get_func_record_for_ref(arn)
    if not record or not config or not record.get("code_zip"):
        return
    runtime = ministack("core.lambda_runtime")
    try:
        runtime.ensure_spawned(runtime.get_or_create_worker(name, config, record["code_zip"], config.get("Version", "$LATEST")))
    except Exception as error:  # a handler that can't be imported raises whatever it likes
        _log.info("%s was not started ahead: %s", name, error)
