"""Tableflow: writes topics to Iceberg tables, and syncs the tables to the customer's Glue Data Catalog."""
