"""The table of probes.

A probe returns True where the server does as AWS does, and something false on stock MiniStack.
"""

import importlib
from collections import defaultdict
from pathlib import Path

from tests.support.aws_clients import error_of

_PROBES = defaultdict(list)


def all_probes():
    """Return the probes of all modules probes_<service>.py, by patch."""
    for module in sorted(Path(__file__).parent.glob("probes_*.py")):
        importlib.import_module(f"simulators.tests.aws.{module.stem}")
    return _PROBES


def probe(patch):
    """Decorate a function of `aws`: a probe of this patch."""

    def register(function):
        _PROBES[patch].append(function)
        return function

    return register


def refuses(patch, name, code, call):
    """Add a probe: `call(aws)` is refused with this error code; None stands for a call that is accepted."""

    def refusal(aws):
        return error_of(call, aws) == code

    refusal.__name__ = name
    probe(patch)(refusal)
