"""Records to write: generated ones, and a user's own events."""
