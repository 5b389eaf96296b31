"""What of a deployment exists at its three vendors, whose each thing is, and what should not be there."""

from lakeferry.inventory.items import AWS, CONFLUENT, ORPHAN, SNOWFLAKE, Item, Verdict
from lakeferry.inventory.taking import problems, take

__all__ = ["AWS", "CONFLUENT", "ORPHAN", "SNOWFLAKE", "Item", "Verdict", "problems", "take"]
