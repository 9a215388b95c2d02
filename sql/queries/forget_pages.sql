SELECT pgsimhash.forget_pages(%(collection)s::text, %(page_ids)s::bigint[])
