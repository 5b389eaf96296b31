"""`lakeferry init`: a few questions, remembered answers, and the deployment file that they make."""
