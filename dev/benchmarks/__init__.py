"""Measurements of what users wait and pay for, and their results."""
