"""The health of a deployment: `doctor` checks what it needs, `status` shows what it does. Both read each fact in one module."""
