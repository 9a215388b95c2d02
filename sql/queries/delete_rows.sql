DELETE FROM {table} WHERE collection_id = ANY (%(collection_ids)s::integer[])
