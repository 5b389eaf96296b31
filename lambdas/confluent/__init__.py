"""Confluent Cloud: the client, and one module for each resource type."""
