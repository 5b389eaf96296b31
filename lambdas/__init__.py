"""The code of all Lambda functions. CDK deploys it as one asset."""
