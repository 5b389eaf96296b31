"""Everything that runs on Spark: the same code under AWS Glue and on a laptop."""
