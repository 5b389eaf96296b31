"""What stands in the way of a deployment, or broke in one: checks by groups, each with what was found and the way to mend it."""

from lakeferry.health.checks import Check, Result
from lakeferry.health.groups import GROUPS, probes
from lakeferry.health.runner import run

__all__ = ["GROUPS", "Check", "Result", "probes", "run"]
