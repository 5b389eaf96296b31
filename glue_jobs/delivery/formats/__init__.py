"""The rows of the CSV file in other formats."""
