"""The streaming query: the only package that imports PySpark."""
