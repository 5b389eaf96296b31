"""Keys that are replaced on schedule: how old they are, and replacing or revoking them by hand."""
