"""Find near simhashes: layouts, pairs and clusters in memory, without a database."""
