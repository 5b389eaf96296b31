"""Constructs that several stacks use."""
