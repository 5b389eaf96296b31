"""The lifecycle of custom resources, the same for every resource type and vendor."""
