"""A simulator of Confluent Cloud's HTTP APIs.

It serves the control plane, Kafka REST, Schema Registry, Connect, Flink SQL, Tableflow and the Iceberg REST
catalog. It is built from the vendor's published API contracts and from the behaviour that the vendor's public
clients rely on, independently of the clients in this repository. docs/how-to/try-the-simulators.md lists
where it is less strict than the vendor.
"""
