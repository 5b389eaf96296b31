"""The table of probes. A probe returns True where the server does as AWS does, and something false on stock MiniStack."""

from __future__ import annotations

from collections import defaultdict

from aws_clients import error_of

#: Probes by patch. The modules probes_<service>.py fill it.
PROBES = defaultdict(list)


def probe(patch):
    """Decorate a function of `aws`: a probe of this patch."""

    def register(function):
        PROBES[patch].append(function)
        return function

    return register


def refuses(patch, name, code, call):
    """Add a probe: `call(aws)` is refused with this error code; None stands for a call that is accepted."""

    def refusal(aws):
        return error_of(call, aws) == code

    refusal.__name__ = name
    probe(patch)(refusal)
