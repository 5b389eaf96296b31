"""What of a deployment exists in AWS, Confluent and Snowflake, who owns each thing, and how all of it is removed."""

from lakeferry.inventory.collect import problems, take
from lakeferry.inventory.model import AWS, CONFLUENT, ORPHAN, SNOWFLAKE, STACK, Item, Verdict

__all__ = ["AWS", "CONFLUENT", "ORPHAN", "SNOWFLAKE", "STACK", "Item", "Verdict", "problems", "take"]
