"""What of a deployment exists at its three vendors, whose each thing is, and what should not be there."""

from lakeferry.inventory.collect import problems, take
from lakeferry.inventory.model import AWS, CONFLUENT, ORPHAN, SNOWFLAKE, Item, Verdict

__all__ = ["AWS", "CONFLUENT", "ORPHAN", "SNOWFLAKE", "Item", "Verdict", "problems", "take"]
