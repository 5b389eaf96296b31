"""The object types, with their CREATE, ALTER, DROP, SHOW and DESCRIBE statements."""
