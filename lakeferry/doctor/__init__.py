"""What stands in the way of a deployment, or broke in one: checks by groups, each with what was found and the way to mend it."""

from lakeferry.doctor.asking import run
from lakeferry.doctor.checks import Check, Result
from lakeferry.doctor.groups import GROUPS, probes

__all__ = ["GROUPS", "Check", "Result", "probes", "run"]
