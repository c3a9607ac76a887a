"""The data pipeline on Spark. The only room that knows pyspark."""
