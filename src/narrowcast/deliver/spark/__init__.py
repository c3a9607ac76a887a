"""The durable log as a Spark source and sink."""
