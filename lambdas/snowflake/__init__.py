"""Snowflake: SQL over its SQL API, with a key pair, and the kinds of objects that are made with it."""
