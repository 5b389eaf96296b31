"""The deployment that a command works on: its file, its AWS session and vendor clients, its stacks, and CDK."""
