"""Snowflake: SQL over its SQL API, with a key pair, and the resource types that use it."""
