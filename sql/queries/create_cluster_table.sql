CREATE TABLE {table} (
    cluster_id bigint, page_id bigint PRIMARY KEY, url text, simhash bigint, canonical boolean
)
