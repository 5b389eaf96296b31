"""From rows to files that somebody may trust: encode, verify, describe, publish once."""
