"""The file formats of data and changelog files: Parquet, ORC and Avro."""
