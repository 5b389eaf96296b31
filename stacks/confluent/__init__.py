"""The stack of Confluent Cloud, in parts: who may do what, streams, tables."""
