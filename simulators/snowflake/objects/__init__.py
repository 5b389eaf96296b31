"""The types of objects, each with its CREATE, ALTER, DROP, SHOW and DESCRIBE."""
