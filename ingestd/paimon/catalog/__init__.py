"""Catalogs, which give access to tables by name: filesystem, Hive, JDBC and REST."""
