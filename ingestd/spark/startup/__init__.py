"""Start the Spark session: its JVM, its Python processes and their settings."""
