"""Tableflow: topics as Iceberg tables, and their copies in the customer's Glue catalog."""
