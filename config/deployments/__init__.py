"""Everything that a user decides: one TOML file for each stage, the model that reads it, and the rules that
check it.
"""
