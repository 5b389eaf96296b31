"""One module for each resource type, with the interface in `lambdas/shared/resource.py`."""
