"""`lakeferry init`: ask a few questions, remember the answers, and write a deployment file from them."""
