"""The two keys that people make: read without showing them, proved at the vendor, kept in Secrets Manager."""
