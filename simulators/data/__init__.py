"""Sources of records: generators, and files with a user's own events."""
