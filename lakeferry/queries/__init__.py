"""Queries of a deployed stage, which only read."""
