"""`lakeferry deploy`: check prerequisites, show the progress of CloudFormation, and report the result."""
