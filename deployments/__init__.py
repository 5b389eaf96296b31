"""Everything a user decides: one TOML file for each stage, the model that reads it, and what it is checked for."""
