"""The Confluent stack in parts: accounts and keys, streams, tables."""
