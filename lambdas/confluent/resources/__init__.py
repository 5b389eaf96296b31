"""One module for each kind of resource, all of the shape that `lambdas.shared.resource` describes."""
