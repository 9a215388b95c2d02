-- add_batch --
SELECT
    verdict, reason, distance, duplicate_of, original_page_id, keep, page_id, run_pages,
    lookup_seconds
FROM pgsimhash._add_batch(
    collection => %(collection)s::text, own_id => %(collection_id)s::integer,
    remember => %(remember)s::boolean, by_policies => %(by_policies)s::boolean,
    run_ids => %(run_ids)s::bigint[], label => %(label)s::text, page_ids => %(page_ids)s::bigint[],
    urls => %(url)s::text[], simhashes => %(simhash)s::bigint[],
    fetched_at => %(fetched_at)s::timestamptz[], signatures_high => %(signature_high)s::bigint[],
    signatures_low => %(signature_low)s::bigint[], text_digests => %(text_digest)s::bigint[],
    html_digests => %(html_digest)s::bytea[], canonicals => %(canonical)s::text[],
    distances => %(distance)s::integer[], verify => %(verify)s::boolean[],
    scopes => %(scope)s::text[], window_sizes => %(window_size)s::integer[],
    since => %(since)s::timestamptz[], max_copies => %(max_copies)s::integer[],
    compared => %(compared)s::integer[], near_to => %(near_to)s::bigint[],
    near_simhashes => %(near_simhashes)s::bigint[], batch_to => %(batch_to)s::bigint[],
    batch_simhashes => %(batch_simhashes)s::bigint[], newest_pages => %(newest_pages)s::bigint[],
    titles => %(title)s::text[], canonical_urls => %(canonical_url)s::text[],
    languages => %(language)s::text[], features => %(features)s::integer[],
    tokens => %(tokens)s::integer[], html_bytes => %(html_bytes)s::integer[],
    structures => %(structure)s::bigint[], markdowns => %(markdown)s::text[]
)

-- near_pairs --
SELECT compared, near_to::text, near_simhashes::text, newest_pages
FROM pgsimhash._near_pairs(
    %(collection_id)s::integer, %(simhashes)s::bigint[], %(distances)s::integer[],
    %(scopes)s::text[]
)

-- lock_compared --
SELECT newest_pages, arrived
FROM pgsimhash._lock_compared(
    %(collection)s::text, %(collection_id)s::integer, %(compared)s::integer[],
    %(newest_pages)s::bigint[]
)

-- arrived_simhashes --
-- For a cache that is valid up to a page id: the cache epoch, the server, the newest page id, and
-- the simhashes added since. There is no limit, but generic plans allow for one, and so do not read
-- all simhashes to sort those of later pages.
SELECT
    (
        SELECT coalesce(pg_catalog.sum(l.epoch), 0)
        FROM pgsimhash.cache_epochs AS l
        WHERE l.collection_id IS NULL OR l.collection_id = %(collection_id)s
    ),
    pg_catalog.pg_postmaster_start_time(),
    (
        SELECT coalesce(pg_catalog.max(p.page_id), 0)
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = %(collection_id)s
    ),
    (
        SELECT pg_catalog.string_agg(pg_catalog.int8send(n.simhash), '')
        FROM (
            SELECT p.simhash
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = %(collection_id)s AND p.page_id > %(newest_page)s
            ORDER BY p.collection_id, p.page_id
            LIMIT %(limit)s
        ) AS n
    )
