"""Near-duplicates without a database: data frames, Parquet files, Spark."""
