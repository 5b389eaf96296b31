"""Flink SQL: the statements API, which has an address per region, and the engines that run the statements."""
