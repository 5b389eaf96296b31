"""Monitoring of a deployment: the age of its tables at each hop, late exports, and the age of its keys."""
