"""Shared by all functions: HTTP, time, secrets, errors, log, and the interface of resource types."""
