"""Infrastructure: one file per stack; `constructs/` is shared by stacks, `assets` builds the code that
ships.
"""
