"""Deploys: checks prerequisites, shows progress while CloudFormation works, and explains the result."""
