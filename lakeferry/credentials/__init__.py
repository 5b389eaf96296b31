"""The keys of a deployment: those that people create are verified at the vendor and stored; the others are rotated."""
