"""What is proven of a deployment, one module a claim or two."""
