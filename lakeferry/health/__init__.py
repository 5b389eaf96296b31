"""What stands in the way of a deployment, or broke in one: checks by groups, each with what was found and the way to mend it."""

from lakeferry.health.model import Check, Result
from lakeferry.health.doctor import GROUPS, probes
from lakeferry.health.runner import run

__all__ = ["GROUPS", "Check", "Result", "probes", "run"]
