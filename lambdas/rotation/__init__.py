"""Rotation of keys while they are in use: Secrets Manager's four steps, and a strategy for each type of
credential.
"""
