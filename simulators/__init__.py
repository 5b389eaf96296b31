"""Stand-ins with state, spoken to over HTTP. They never import the code under test."""
