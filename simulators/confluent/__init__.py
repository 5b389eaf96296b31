"""Confluent Cloud over HTTP: control plane, Kafka REST, Schema Registry, Connect, Flink SQL, Tableflow, Iceberg catalog.

Built from the vendor's published contracts and from what its public clients tell of its behaviour, independently of any
client of this repository. Where it is laxer than the vendor is listed in docs/how-to/try-the-confluent-simulator.md.
"""
