"""The checks of a deployment, one module for each subject."""
