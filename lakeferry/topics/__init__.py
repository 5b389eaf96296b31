"""The schemas of topics that exist: read from their tables, written to project/topics/."""
