"""Iceberg tables as Confluent's Tableflow writes them, from Avro records."""
