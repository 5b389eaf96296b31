"""Step Functions: executions begin at once.

- step_functions: Stock MiniStack delays each execution by 150 ms, and a deployment has one execution for each
  custom resource. Source: Step Functions developer guide, "Standard workflows": an execution begins when
  StartExecution answers.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and stepfunctions"`
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from simulators.aws.hooks import Patch, import_ministack

START = Patch("step_functions")
#: Each execution has its own thread. `begins` is true until the execution's first sleep.
_state: Final = threading.local()


class _Clock:
    """The module `time`, except that the first sleep of an execution is skipped."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        if getattr(_state, "begins", False):
            _state.begins = False
        else:
            time.sleep(seconds)


_CLOCK: Final = _Clock()


@START.replaces("ministack.services.stepfunctions", "_run_execution", "exec_arn")
def run_execution(original: Callable[[str], None], exec_arn: str) -> None:
    import_ministack("services.stepfunctions").time = _CLOCK
    _state.begins = True
    try:
        original(exec_arn)
    finally:
        _state.begins = False


PATCHES: Final = (START,)
