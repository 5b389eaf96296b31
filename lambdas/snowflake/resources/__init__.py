"""One module for each kind of object, all of the shape in lambdas/shared/resource.py."""
