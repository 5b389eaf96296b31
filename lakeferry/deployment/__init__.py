"""The deployment that a command works on: its file, its clients of AWS and the vendors, its stacks, and the
CDK CLI.
"""
