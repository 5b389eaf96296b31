"""The health of a deployment: `doctor` checks what it needs, `status` shows its state.

Both use the same readers.
"""
