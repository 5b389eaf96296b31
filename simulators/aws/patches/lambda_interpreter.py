"""Functions run in the project's interpreter, with the packages that ship with them.

Stock MiniStack runs them in its own, which has other ones.
"""

from __future__ import annotations

from collections.abc import Callable

from simulators.aws import settings
from simulators.aws.hooks import Patch

PATCH = Patch("lambda_interpreter")


@PATCH.replaces("ministack.core.lambda_runtime", "_detect_runtime_binary", "runtime")
def detect_runtime_binary(original: Callable[[str], tuple[str, str]], runtime: str) -> tuple[str, str]:
    binary, script = original(runtime)
    return (str(settings.LAMBDA_PYTHON), script) if runtime.startswith("python") else (binary, script)
