"""The keys of a deployment.

Keys that people create are verified with the vendor and stored; the other keys are rotated.
"""
