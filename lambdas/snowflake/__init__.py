"""Snowflake: its SQL API, authenticated with a key pair, and the resource types that use it."""
