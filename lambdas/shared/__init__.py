"""Code that all functions share: HTTP, time, secrets, errors, logging, and the interface of resource
types.
"""
