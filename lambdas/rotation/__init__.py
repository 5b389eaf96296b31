"""Keys that change on schedule while others use them: Secrets Manager's four steps once, and a strategy for each credential."""
