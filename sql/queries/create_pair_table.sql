CREATE TABLE {table} (low bigint, high bigint, distance smallint, PRIMARY KEY (low, high))
