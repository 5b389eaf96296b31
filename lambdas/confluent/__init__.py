"""Confluent Cloud: the client, and one module for each kind of resource."""
