"""A stand-in for a Snowflake account, spoken to over its SQL API.

It keeps state, enforces privileges, and refuses what Snowflake refuses.

Its tables are read for real, through STS, Glue and S3 of the embedded AWS. docs/how-to/try-the-snowflake-simulator.md
shows how to use it and where it is laxer than Snowflake.
"""
