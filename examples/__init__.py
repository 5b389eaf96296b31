"""Apps that use Lakeferry's constructs without a deployment file."""
