"""Flink SQL: statements on the regional address, and the engines that run them."""
