"""Rotation of keys that are in use: Secrets Manager's four steps, and one strategy for each type of credential."""
