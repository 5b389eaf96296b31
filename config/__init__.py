"""What a user writes, as typed models: one TOML layer, the export contract and the deployment file."""
