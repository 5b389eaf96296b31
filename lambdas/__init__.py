"""Everything that runs in Lambda, one code asset."""
