"""The SQL of the package: the schema, a folder per revision, and the queries."""
