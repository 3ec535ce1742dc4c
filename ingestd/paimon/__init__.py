"""The Paimon table format: a library that knows neither Kafka, change data capture nor Spark."""
