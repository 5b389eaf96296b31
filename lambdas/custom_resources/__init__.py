"""The lifecycle that every kind of resource goes through, whoever its vendor is."""
