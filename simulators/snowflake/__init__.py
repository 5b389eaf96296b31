"""A simulator of a Snowflake account and its SQL API.

It keeps state, enforces privileges, and refuses what Snowflake refuses. It really reads Iceberg tables,
through STS, Glue and S3 of the embedded AWS. docs/how-to/try-the-simulators.md shows how to use it and where
it is less strict than Snowflake.
"""
