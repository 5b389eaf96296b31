"""The objects of a deployment in AWS, Confluent and Snowflake: who owns each, and how all are removed."""

from lakeferry.inventory.collect import collect, problems
from lakeferry.inventory.model import AWS, CONFLUENT, ORPHAN, SNOWFLAKE, STACK, Item, Verdict

__all__ = ["AWS", "CONFLUENT", "ORPHAN", "SNOWFLAKE", "STACK", "Item", "Verdict", "collect", "problems"]
