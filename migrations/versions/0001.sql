-- All tables: collections, their simhashes with the prefix columns that make lookups fast, their
-- pages, then runs, policies and marks. The first comment in a table describes the table, those
-- behind columns describe the columns; the deployed schema has both as COMMENT ON.

-- Only the letters A to Z become lower case: for other letters, and without "C" for these too, it
-- would depend on the database's locale.
CREATE FUNCTION pgsimhash.host_of(url text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        -- The fast path for most URLs.
        WHEN url ~ '^https?://[^]/?#@:[\\]+(/|$)' THEN lower(split_part(url, '/', 3) COLLATE "C")
        ELSE lower(substring(
            url FROM '^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\\]*@)?'
                '(\[[0-9A-Za-z:.%]+\]|[^][/?#:@\\]+)(?=[:/?#\\]|$)'
        ) COLLATE "C")
    END;

COMMENT ON FUNCTION pgsimhash.host_of(text) IS
    'The host of an absolute URL, with A to Z in lower case; NULL without a host.';

CREATE TABLE pgsimhash.layouts (
    -- The deployed layouts. Each has its own table simhashes<suffix> and its own functions.
    name text PRIMARY KEY,               -- The widths of its bit blocks, such as 22+21+21.
    suffix text NOT NULL,                -- The suffix of its table and functions; empty by default.
    indexed boolean NOT NULL,            -- Whether all of its indexes are built.
    largest_distance smallint NOT NULL,  -- The largest distance of its lookups, in bits.
    prefix_bits smallint NOT NULL,       -- The width of its first prefix, in bits.
    CONSTRAINT layouts_suffix_key UNIQUE (suffix)
);

COMMENT ON TABLE pgsimhash.layouts IS
    'The deployed layouts. Each has its own table simhashes<suffix> and its own functions.';

COMMENT ON COLUMN pgsimhash.layouts.name IS
    'The widths of its bit blocks, such as 22+21+21.';

COMMENT ON COLUMN pgsimhash.layouts.suffix IS
    'The suffix of its table and functions; empty by default.';

COMMENT ON COLUMN pgsimhash.layouts.indexed IS
    'Whether all of its indexes are built.';

COMMENT ON COLUMN pgsimhash.layouts.largest_distance IS
    'The largest distance of its lookups, in bits.';

COMMENT ON COLUMN pgsimhash.layouts.prefix_bits IS
    'The width of its first prefix, in bits.';

CREATE TABLE pgsimhash.collections (
    -- A set of pages that are compared with each other: one scheme, one layout.
    collection_id integer GENERATED ALWAYS AS IDENTITY,  -- The leading bits of every prefix column.
    name text NOT NULL,                            -- Its present name.
    scheme text NOT NULL,                          -- The scheme that computes its simhashes.
    layout text NOT NULL DEFAULT '22+21+21',       -- The layout whose table holds its simhashes.
    default_distance smallint NOT NULL DEFAULT 8,  -- The default distance, in bits.
    keep_markdown boolean NOT NULL DEFAULT false,  -- Whether it stores the Markdown of pages.
    normalize_urls boolean NOT NULL DEFAULT false, -- Whether the package normalizes incoming URLs.
    created_at timestamptz NOT NULL DEFAULT now(), -- When it was created.
    CONSTRAINT collections_pkey PRIMARY KEY (collection_id),
    CONSTRAINT collections_name_key UNIQUE (name),
    CONSTRAINT collections_layout_fkey FOREIGN KEY (layout) REFERENCES pgsimhash.layouts,
    CONSTRAINT collections_id_fits CHECK (collection_id BETWEEN 1 AND 8388607),
    CONSTRAINT collections_name_given CHECK (name <> ''),
    CONSTRAINT collections_distance_fits CHECK (default_distance BETWEEN 0 AND 12)
);

COMMENT ON TABLE pgsimhash.collections IS
    'A set of pages that are compared with each other: one scheme, one layout.';

COMMENT ON COLUMN pgsimhash.collections.collection_id IS
    'The leading bits of every prefix column.';

COMMENT ON COLUMN pgsimhash.collections.name IS
    'Its present name.';

COMMENT ON COLUMN pgsimhash.collections.scheme IS
    'The scheme that computes its simhashes.';

COMMENT ON COLUMN pgsimhash.collections.layout IS
    'The layout whose table holds its simhashes.';

COMMENT ON COLUMN pgsimhash.collections.default_distance IS
    'The default distance, in bits.';

COMMENT ON COLUMN pgsimhash.collections.keep_markdown IS
    'Whether it stores the Markdown of pages.';

COMMENT ON COLUMN pgsimhash.collections.normalize_urls IS
    'Whether the package normalizes incoming URLs.';

COMMENT ON COLUMN pgsimhash.collections.created_at IS
    'When it was created.';

-- The table of the default layout; layout.sql renders its indexes, functions and triggers, and the
-- same for other layouts. Pages that share a simhash share a row. PostgreSQL computes the prefix
-- columns, so plain INSERTs are correct too. A prefix column holds the collection's id (shifted
-- by 40) above the bit block that leads the permutation: 22, 21 and 21 bits. In each index the
-- simhash follows, so the Hamming check reads the index alone. The boolean takes no space there.
CREATE TABLE pgsimhash.simhashes (
    -- The distinct simhashes of collections with layout 22+21+21.
    collection_id integer NOT NULL,            -- The collection of the simhash.
    standalone boolean NOT NULL DEFAULT true,  -- Whether it stays when its last page is deleted.
    simhash bigint NOT NULL,                   -- The 64 bits, as a signed number.
    prefix_1 bigint NOT NULL GENERATED ALWAYS AS (  -- The collection's id, then bits 63 to 42.
        (collection_id::bigint << 40) | ((simhash >> 42) & 4194303)
    ) STORED,
    prefix_2 bigint NOT NULL GENERATED ALWAYS AS (  -- The collection's id, then bits 41 to 21.
        (collection_id::bigint << 40) | ((simhash >> 21) & 2097151)
    ) STORED,
    prefix_3 bigint NOT NULL GENERATED ALWAYS AS (  -- The collection's id, then bits 20 to 0.
        (collection_id::bigint << 40) | ((simhash >> 0) & 2097151)
    ) STORED,
    CONSTRAINT simhashes_pkey PRIMARY KEY (prefix_1, simhash)
        WITH (fillfactor = 97)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

COMMENT ON TABLE pgsimhash.simhashes IS
    'The distinct simhashes of collections with layout 22+21+21.';

COMMENT ON COLUMN pgsimhash.simhashes.collection_id IS
    'The collection of the simhash.';

COMMENT ON COLUMN pgsimhash.simhashes.standalone IS
    'Whether it stays when its last page is deleted.';

COMMENT ON COLUMN pgsimhash.simhashes.simhash IS
    'The 64 bits, as a signed number.';

COMMENT ON COLUMN pgsimhash.simhashes.prefix_1 IS
    'The collection''s id, then bits 63 to 42.';

COMMENT ON COLUMN pgsimhash.simhashes.prefix_2 IS
    'The collection''s id, then bits 41 to 21.';

COMMENT ON COLUMN pgsimhash.simhashes.prefix_3 IS
    'The collection''s id, then bits 20 to 0.';

-- The newest row of a URL is its present version. There is no foreign key to simhashes: it would
-- lock the row of a frequent simhash for every page that shares it. The trigger put_simhashes checks
-- the collection instead of a foreign key, once a statement.
CREATE TABLE pgsimhash.pages (
    -- Every version of every page, with its simhash and its original.
    page_id bigint GENERATED BY DEFAULT AS IDENTITY,  -- Its id; later pages have higher ids.
    collection_id integer NOT NULL,  -- Its collection.
    url text NOT NULL,               -- Its URL.
    host text GENERATED ALWAYS AS (pgsimhash.host_of(url)) STORED,  -- The host, in lower case.
    simhash bigint NOT NULL,         -- Its simhash in the collection's scheme.
    fetched_at timestamptz NOT NULL DEFAULT now(),  -- When it was fetched.
    run_id bigint,                   -- The run that added it, if any.
    title text,                      -- The text of its title element.
    canonical_url text,              -- The absolute URL of its rel=canonical.
    language text,                   -- Its lang attribute.
    features integer,                -- The number of distinct features.
    tokens integer,                  -- The number of tokens of its main content.
    html_bytes integer,              -- The size of its HTML in bytes.
    html_digest bytea,               -- The first 16 bytes of the SHA-256 of the HTML.
    text_digest bigint,              -- A hash of the words and numbers of its main content.
    structure bigint,                -- The simhash of its structure, similar within a template.
    signature_high bigint,           -- The upper 64 of the 128 bits that verify a match.
    signature_low bigint,            -- The lower 64 bits.
    markdown text,                   -- Its main content, if the collection keeps it.
    duplicate_of bigint,             -- The page_id of its original, which can be a copy itself.
    distance smallint,               -- The distance to its original in bits; NULL for an original.
    CONSTRAINT pages_pkey PRIMARY KEY (collection_id, page_id),
    CONSTRAINT pages_url_length CHECK (octet_length(url) BETWEEN 1 AND 2048),
    CONSTRAINT pages_fetched_at_fits
        CHECK (fetched_at BETWEEN '1970-01-01 00:00+00' AND '9999-12-30 00:00+00')
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

COMMENT ON TABLE pgsimhash.pages IS
    'Every version of every page, with its simhash and its original.';

COMMENT ON COLUMN pgsimhash.pages.page_id IS
    'Its id; later pages have higher ids.';

COMMENT ON COLUMN pgsimhash.pages.collection_id IS
    'Its collection.';

COMMENT ON COLUMN pgsimhash.pages.url IS
    'Its URL.';

COMMENT ON COLUMN pgsimhash.pages.host IS
    'The host, in lower case.';

COMMENT ON COLUMN pgsimhash.pages.simhash IS
    'Its simhash in the collection''s scheme.';

COMMENT ON COLUMN pgsimhash.pages.fetched_at IS
    'When it was fetched.';

COMMENT ON COLUMN pgsimhash.pages.run_id IS
    'The run that added it, if any.';

COMMENT ON COLUMN pgsimhash.pages.title IS
    'The text of its title element.';

COMMENT ON COLUMN pgsimhash.pages.canonical_url IS
    'The absolute URL of its rel=canonical.';

COMMENT ON COLUMN pgsimhash.pages.language IS
    'Its lang attribute.';

COMMENT ON COLUMN pgsimhash.pages.features IS
    'The number of distinct features.';

COMMENT ON COLUMN pgsimhash.pages.tokens IS
    'The number of tokens of its main content.';

COMMENT ON COLUMN pgsimhash.pages.html_bytes IS
    'The size of its HTML in bytes.';

COMMENT ON COLUMN pgsimhash.pages.html_digest IS
    'The first 16 bytes of the SHA-256 of the HTML.';

COMMENT ON COLUMN pgsimhash.pages.text_digest IS
    'A hash of the words and numbers of its main content.';

COMMENT ON COLUMN pgsimhash.pages.structure IS
    'The simhash of its structure, similar within a template.';

COMMENT ON COLUMN pgsimhash.pages.signature_high IS
    'The upper 64 of the 128 bits that verify a match.';

COMMENT ON COLUMN pgsimhash.pages.signature_low IS
    'The lower 64 bits.';

COMMENT ON COLUMN pgsimhash.pages.markdown IS
    'Its main content, if the collection keeps it.';

COMMENT ON COLUMN pgsimhash.pages.duplicate_of IS
    'The page_id of its original, which can be a copy itself.';

COMMENT ON COLUMN pgsimhash.pages.distance IS
    'The distance to its original in bits; NULL for an original.';

CREATE INDEX pages_url_idx ON pgsimhash.pages (collection_id, url, page_id);

CREATE INDEX pages_simhash_idx ON pgsimhash.pages (collection_id, simhash, page_id);

-- The originals of a host are adjacent, so copies do not slow down a window.
CREATE INDEX pages_host_idx
    ON pgsimhash.pages (collection_id, host, (distance IS NULL), page_id);

CREATE INDEX pages_original_idx ON pgsimhash.pages (collection_id, page_id)
    WHERE distance IS NULL;

CREATE INDEX pages_duplicate_of_idx ON pgsimhash.pages (collection_id, duplicate_of)
    WHERE duplicate_of IS NOT NULL;

-- A narrow table whose disk pages have room for a second version of all rows: a crawl that sees
-- everything again writes to no index.
CREATE TABLE pgsimhash.last_seen (
    -- When versions were last seen again unchanged. Versions never seen again have no row.
    collection_id integer NOT NULL,  -- The collection of the page.
    page_id bigint NOT NULL,         -- The version that was seen again.
    seen_at timestamptz NOT NULL,    -- When it was last seen.
    CONSTRAINT last_seen_pkey PRIMARY KEY (collection_id, page_id),
    CONSTRAINT last_seen_collection_id_fkey
        FOREIGN KEY (collection_id) REFERENCES pgsimhash.collections,
    CONSTRAINT last_seen_at_fits
        CHECK (seen_at BETWEEN '1970-01-01 00:00+00' AND '9999-12-30 00:00+00')
) WITH (fillfactor = 45);

COMMENT ON TABLE pgsimhash.last_seen IS
    'When versions were last seen again unchanged. Versions never seen again have no row.';

COMMENT ON COLUMN pgsimhash.last_seen.collection_id IS
    'The collection of the page.';

COMMENT ON COLUMN pgsimhash.last_seen.page_id IS
    'The version that was seen again.';

COMMENT ON COLUMN pgsimhash.last_seen.seen_at IS
    'When it was last seen.';

-- A run has a row from its first batch until its last page is deleted. Pages of other runs may have
-- ids between first_page and last_page.
CREATE TABLE pgsimhash.runs (
    -- The jobs that added pages, with their counters.
    run_id bigint GENERATED BY DEFAULT AS IDENTITY,  -- Its id.
    collection_id integer NOT NULL,                  -- The collection of its pages.
    label text NOT NULL,                             -- The name that the caller gave.
    started_at timestamptz NOT NULL DEFAULT now(),   -- When its first batch was written.
    finished_at timestamptz NOT NULL DEFAULT now(),  -- When its last batch so far was written.
    pages bigint NOT NULL DEFAULT 0,                 -- The number of decided pages.
    new bigint NOT NULL DEFAULT 0,                   -- The number of new pages.
    duplicates bigint NOT NULL DEFAULT 0,            -- The number of duplicates and near ones.
    updated bigint NOT NULL DEFAULT 0,               -- The number of new versions.
    unchanged bigint NOT NULL DEFAULT 0,             -- The number of unchanged pages.
    first_page bigint,                               -- The first of its remaining pages.
    last_page bigint,                                -- The last of its remaining pages.
    CONSTRAINT runs_pkey PRIMARY KEY (collection_id, run_id),
    CONSTRAINT runs_collection_id_fkey
        FOREIGN KEY (collection_id) REFERENCES pgsimhash.collections
);

COMMENT ON TABLE pgsimhash.runs IS
    'The jobs that added pages, with their counters.';

COMMENT ON COLUMN pgsimhash.runs.run_id IS
    'Its id.';

COMMENT ON COLUMN pgsimhash.runs.collection_id IS
    'The collection of its pages.';

COMMENT ON COLUMN pgsimhash.runs.label IS
    'The name that the caller gave.';

COMMENT ON COLUMN pgsimhash.runs.started_at IS
    'When its first batch was written.';

COMMENT ON COLUMN pgsimhash.runs.finished_at IS
    'When its last batch so far was written.';

COMMENT ON COLUMN pgsimhash.runs.pages IS
    'The number of decided pages.';

COMMENT ON COLUMN pgsimhash.runs.new IS
    'The number of new pages.';

COMMENT ON COLUMN pgsimhash.runs.duplicates IS
    'The number of duplicates and near ones.';

COMMENT ON COLUMN pgsimhash.runs.updated IS
    'The number of new versions.';

COMMENT ON COLUMN pgsimhash.runs.unchanged IS
    'The number of unchanged pages.';

COMMENT ON COLUMN pgsimhash.runs.first_page IS
    'The first of its remaining pages.';

COMMENT ON COLUMN pgsimhash.runs.last_page IS
    'The last of its remaining pages.';

-- A changed file has a different size or time, and is read again.
CREATE TABLE pgsimhash.sources (
    -- The ingested files, and which of their records a rerun skips.
    collection_id integer NOT NULL,  -- The collection of its pages.
    path text NOT NULL,              -- The absolute path, on the machine that read it.
    size bigint NOT NULL,            -- Its size in bytes.
    modified_ns bigint NOT NULL,     -- When it was modified: nanoseconds since 1970.
    last_record bigint,              -- The last stored record, from 1; NULL: all are stored.
    failed bigint[] NOT NULL,        -- The failed records up to that.
    page_id bigint,                  -- Its stored page, if it is an HTML file.
    CONSTRAINT sources_pkey PRIMARY KEY (collection_id, path),
    CONSTRAINT sources_collection_id_fkey
        FOREIGN KEY (collection_id) REFERENCES pgsimhash.collections
);

COMMENT ON TABLE pgsimhash.sources IS
    'The ingested files, and which of their records a rerun skips.';

COMMENT ON COLUMN pgsimhash.sources.collection_id IS
    'The collection of its pages.';

COMMENT ON COLUMN pgsimhash.sources.path IS
    'The absolute path, on the machine that read it.';

COMMENT ON COLUMN pgsimhash.sources.size IS
    'Its size in bytes.';

COMMENT ON COLUMN pgsimhash.sources.modified_ns IS
    'When it was modified: nanoseconds since 1970.';

COMMENT ON COLUMN pgsimhash.sources.last_record IS
    'The last stored record, from 1; NULL: all are stored.';

COMMENT ON COLUMN pgsimhash.sources.failed IS
    'The failed records up to that.';

COMMENT ON COLUMN pgsimhash.sources.page_id IS
    'Its stored page, if it is an HTML file.';

-- If a setting is NULL, the next matching policy decides: first those of the page's host, then
-- of its parent domains, then of all hosts; for one host, longer paths come first. Ages are bounded
-- so that they can be subtracted from the present time.
CREATE TABLE pgsimhash.policies (
    -- Settings for some hosts and paths, which override those of the collection.
    policy_id bigint GENERATED ALWAYS AS IDENTITY,  -- Its id.
    collection_id integer NOT NULL,  -- Its collection.
    host text NOT NULL,              -- Its host, with subdomains; * matches all.
    path text NOT NULL DEFAULT '*',  -- Its path; * matches anything.
    distance smallint,               -- The largest distance of a duplicate, in bits.
    verify boolean,                  -- Whether signatures must agree too.
    scope text,                      -- Where originals are searched: host, collection or global.
    window_size integer,             -- The number of newest originals to compare with.
    max_age interval,                -- How much older than the page an original may be.
    canonical_link boolean,          -- Whether the page in rel=canonical is the original.
    max_copies integer,              -- How many near-duplicates are worth keeping.
    min_tokens integer,              -- Pages with fewer tokens are not stored.
    expire_after interval,           -- How long after it was last seen a version expires.
    set_at timestamptz NOT NULL DEFAULT now(),  -- When it was last set.
    CONSTRAINT policies_pkey PRIMARY KEY (collection_id, policy_id),
    CONSTRAINT policies_pattern_key UNIQUE (collection_id, host, path),
    CONSTRAINT policies_collection_id_fkey
        FOREIGN KEY (collection_id) REFERENCES pgsimhash.collections,
    CONSTRAINT policies_host_given
        CHECK (host = '*' OR host = lower(host COLLATE "C") AND host ~ '^[^/?#@:\s*]+$'),
    CONSTRAINT policies_path_fits CHECK (path = '*' OR path ~ '^/\S*$' AND length(path) <= 500),
    CONSTRAINT policies_distance_fits CHECK (distance BETWEEN 0 AND 12),
    CONSTRAINT policies_scope_known CHECK (scope IN ('host', 'collection', 'global')),
    CONSTRAINT policies_window_size_positive CHECK (window_size >= 1),
    CONSTRAINT policies_max_age_fits
        CHECK (max_age > interval '0' AND max_age <= interval '1000 years'),
    CONSTRAINT policies_max_copies_positive CHECK (max_copies >= 1),
    CONSTRAINT policies_min_tokens_positive CHECK (min_tokens >= 1),
    CONSTRAINT policies_expire_after_fits
        CHECK (expire_after > interval '0' AND expire_after <= interval '1000 years')
);

COMMENT ON TABLE pgsimhash.policies IS
    'Settings for some hosts and paths, which override those of the collection.';

COMMENT ON COLUMN pgsimhash.policies.policy_id IS
    'Its id.';

COMMENT ON COLUMN pgsimhash.policies.collection_id IS
    'Its collection.';

COMMENT ON COLUMN pgsimhash.policies.host IS
    'Its host, with subdomains; * matches all.';

COMMENT ON COLUMN pgsimhash.policies.path IS
    'Its path; * matches anything.';

COMMENT ON COLUMN pgsimhash.policies.distance IS
    'The largest distance of a duplicate, in bits.';

COMMENT ON COLUMN pgsimhash.policies.verify IS
    'Whether signatures must agree too.';

COMMENT ON COLUMN pgsimhash.policies.scope IS
    'Where originals are searched: host, collection or global.';

COMMENT ON COLUMN pgsimhash.policies.window_size IS
    'The number of newest originals to compare with.';

COMMENT ON COLUMN pgsimhash.policies.max_age IS
    'How much older than the page an original may be.';

COMMENT ON COLUMN pgsimhash.policies.canonical_link IS
    'Whether the page in rel=canonical is the original.';

COMMENT ON COLUMN pgsimhash.policies.max_copies IS
    'How many near-duplicates are worth keeping.';

COMMENT ON COLUMN pgsimhash.policies.min_tokens IS
    'Pages with fewer tokens are not stored.';

COMMENT ON COLUMN pgsimhash.policies.expire_after IS
    'How long after it was last seen a version expires.';

COMMENT ON COLUMN pgsimhash.policies.set_at IS
    'When it was last set.';

-- Marks refer to URLs, so they apply to later versions too. The functions of marks.sql keep them
-- free of contradictions.
CREATE TABLE pgsimhash.marks (
    -- Pairs of URLs that a person marked as the same or different; they override simhashes.
    mark_id bigint GENERATED BY DEFAULT AS IDENTITY,  -- Its id.
    collection_id integer NOT NULL,                   -- Its collection.
    url_a text NOT NULL,                              -- The lesser of the two URLs.
    url_b text NOT NULL,                              -- The other URL.
    same boolean NOT NULL,                            -- Whether the pages are the same.
    marked_at timestamptz NOT NULL DEFAULT now(),     -- When it was set.
    CONSTRAINT marks_pkey PRIMARY KEY (collection_id, mark_id),
    CONSTRAINT marks_collection_id_fkey
        FOREIGN KEY (collection_id) REFERENCES pgsimhash.collections,
    CONSTRAINT marks_in_order CHECK (url_a COLLATE "C" < url_b COLLATE "C")
);

COMMENT ON TABLE pgsimhash.marks IS
    'Pairs of URLs that a person marked as the same or different; they override simhashes.';

COMMENT ON COLUMN pgsimhash.marks.mark_id IS
    'Its id.';

COMMENT ON COLUMN pgsimhash.marks.collection_id IS
    'Its collection.';

COMMENT ON COLUMN pgsimhash.marks.url_a IS
    'The lesser of the two URLs.';

COMMENT ON COLUMN pgsimhash.marks.url_b IS
    'The other URL.';

COMMENT ON COLUMN pgsimhash.marks.same IS
    'Whether the pages are the same.';

COMMENT ON COLUMN pgsimhash.marks.marked_at IS
    'When it was set.';

CREATE INDEX marks_url_a_idx ON pgsimhash.marks (collection_id, url_a);

CREATE INDEX marks_url_b_idx ON pgsimhash.marks (collection_id, url_b);

-- The transaction that copies a batch updates the row, so an interrupted rebuild continues there.
-- While the row exists, only the rebuild writes to the collection.
CREATE TABLE pgsimhash.rebuilds (
    -- Collections that are built from others, with another layout, scheme or settings.
    collection_id integer NOT NULL,                 -- The collection that is built.
    source_id integer NOT NULL,                     -- The collection that it is built from.
    asked jsonb NOT NULL,                           -- The request; only the same one continues.
    last_page bigint NOT NULL DEFAULT 0,            -- The largest page_id that was copied.
    started_at timestamptz NOT NULL DEFAULT now(),  -- When it began.
    updated_at timestamptz NOT NULL DEFAULT now(),  -- When its last batch was copied.
    CONSTRAINT rebuilds_pkey PRIMARY KEY (collection_id),
    CONSTRAINT rebuilds_collection_id_fkey
        FOREIGN KEY (collection_id) REFERENCES pgsimhash.collections,
    CONSTRAINT rebuilds_source_id_fkey FOREIGN KEY (source_id) REFERENCES pgsimhash.collections
);

COMMENT ON TABLE pgsimhash.rebuilds IS
    'Collections that are built from others, with another layout, scheme or settings.';

COMMENT ON COLUMN pgsimhash.rebuilds.collection_id IS
    'The collection that is built.';

COMMENT ON COLUMN pgsimhash.rebuilds.source_id IS
    'The collection that it is built from.';

COMMENT ON COLUMN pgsimhash.rebuilds.asked IS
    'The request; only the same one continues.';

COMMENT ON COLUMN pgsimhash.rebuilds.last_page IS
    'The largest page_id that was copied.';

COMMENT ON COLUMN pgsimhash.rebuilds.started_at IS
    'When it began.';

COMMENT ON COLUMN pgsimhash.rebuilds.updated_at IS
    'When its last batch was copied.';

-- Caches find new pages by their ids. All other additions of simhashes insert a row here, so that
-- writers do not wait for each other. The epochs are random, so equal sums mean equal rows.
CREATE TABLE pgsimhash.cache_epochs (
    -- Rows whose sum changes when simhashes are added in another way than page by page.
    collection_id integer,  -- Their collection; NULL if it is unknown.
    epoch bigint NOT NULL DEFAULT (random() * 1099511627776)::bigint  -- A random number, or a sum.
);

COMMENT ON TABLE pgsimhash.cache_epochs IS
    'Rows whose sum changes when simhashes are added in another way than page by page.';

COMMENT ON COLUMN pgsimhash.cache_epochs.collection_id IS
    'Their collection; NULL if it is unknown.';

COMMENT ON COLUMN pgsimhash.cache_epochs.epoch IS
    'A random number, or a sum.';

-- Logical replication, with which Citus moves a schema, needs this for tables without a key.
ALTER TABLE pgsimhash.cache_epochs REPLICA IDENTITY FULL;

CREATE TYPE pgsimhash.match AS (
    simhash bigint,
    distance integer
);

COMMENT ON TYPE pgsimhash.match IS
    'A stored simhash and its distance from the query, in bits.';

CREATE TYPE pgsimhash.numbered_match AS (
    query_number bigint,
    simhash bigint,
    distance integer
);

COMMENT ON TYPE pgsimhash.numbered_match IS
    'A match of one of many queries: query_number counts the queries from 1.';

CREATE TYPE pgsimhash.near_page AS (
    url text,
    distance integer,
    simhash bigint,
    title text,
    fetched_at timestamptz,
    page_id bigint
);

COMMENT ON TYPE pgsimhash.near_page IS
    'The present version of a page and its distance from the query, in bits.';

CREATE TYPE pgsimhash.verdict AS (
    url text,
    verdict text,
    reason text,
    distance integer,
    duplicate_of text,
    keep boolean,
    page_id bigint,
    original_page_id bigint
);

COMMENT ON TYPE pgsimhash.verdict IS
    'The decision about a page, and the ids of the page and of its original.';

-- Simhashes as numbers and as text.

-- PostgreSQL has bit_count for bytea and bit only.
CREATE FUNCTION pgsimhash.bit_count(bits bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count(bits::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.bit_count(bigint) IS 'The number of set bits, 0 to 64.';

CREATE FUNCTION pgsimhash.hamming_distance(a bigint, b bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count((a # b)::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.hamming_distance(bigint, bigint) IS
    'The number of bits in which two simhashes differ, 0 to 64.';

CREATE FUNCTION pgsimhash.similarity(a bigint, b bigint) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN 1 - pgsimhash.hamming_distance(a, b) / 64.0::double precision;

COMMENT ON FUNCTION pgsimhash.similarity(bigint, bigint) IS
    'The share of equal bits of two simhashes, from 0 to 1.';

CREATE FUNCTION pgsimhash.level_distance(level text) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE level
        WHEN 'close' THEN 1
        WHEN 'loose' THEN 6
    END;

COMMENT ON FUNCTION pgsimhash.level_distance(text) IS
    'The largest distance at a level of similarity: close (.98) or loose (.90).';

-- The eight bytes of a simhash, big-endian, in RFC 4648's base32 without padding.
CREATE FUNCTION pgsimhash.to_base32(simhash bigint) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        SELECT string_agg(
            substr('abcdefghijklmnopqrstuvwxyz234567', 1 + (
                CASE WHEN place = 12 THEN simhash << 1 ELSE simhash >> 59 - 5 * place END & 31
            )::integer, 1),
            '' ORDER BY place
        )
        FROM generate_series(0, 12) AS place;
    END;

COMMENT ON FUNCTION pgsimhash.to_base32(bigint) IS
    'The eight bytes of a simhash as 13 digits of base32.';

CREATE FUNCTION pgsimhash.from_base32(digits text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF digits !~ '^[a-zA-Z2-7]{12}[aAcCeEgGiIkKmMoOqQsSuUwWyY246](===)?$' THEN
        RAISE EXCEPTION '"%" is not base32 of eight bytes', digits
            USING ERRCODE = 'invalid_text_representation',
            HINT = 'Write 13 digits of a-z and 2-7, the last one of acegikmoqsuwy246.';
    END IF;
    RETURN (
        SELECT bit_or(
            CASE WHEN place = 12 THEN value >> 1 ELSE value << 59 - 5 * place END
        )
        FROM generate_series(0, 12) AS place
        CROSS JOIN LATERAL (
            SELECT strpos(
                'abcdefghijklmnopqrstuvwxyz234567', lower(substr(digits, place + 1, 1) COLLATE "C")
            )::bigint - 1 AS value
        ) AS digit
    );
END
$$;

COMMENT ON FUNCTION pgsimhash.from_base32(text) IS
    'The simhash of a text by to_base32, in either case; an error for any other text.';

CREATE FUNCTION pgsimhash.signature_distance(
    a_high bigint, a_low bigint, b_high bigint, b_low bigint
) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count((a_high # b_high)::bit(64))::integer
        + pg_catalog.bit_count((a_low # b_low)::bit(64))::integer;

COMMENT ON FUNCTION pgsimhash.signature_distance(bigint, bigint, bigint, bigint) IS
    'The number of bits in which two signatures of 128 bits differ; usually 20 or less for copies.';

-- Like pgsimhash.simhash in Python: a set bit adds a feature's weight, a clear bit subtracts it,
-- and the simhash has a 1 where the sum is above zero (Charikar 2002). Weights are rounded to units
-- of 2**-16, so that sums are exact.
CREATE FUNCTION pgsimhash.simhash(
    features bigint[], weights double precision[] DEFAULT NULL
) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    made bigint;
BEGIN
    IF weights IS NOT NULL AND cardinality(weights) <> cardinality(features)
        OR EXISTS (
            SELECT FROM unnest(weights) AS w
            WHERE (w >= 0 AND w < 68719476736) IS NOT TRUE
        )
    THEN
        RAISE EXCEPTION 'each feature must have a finite weight of 0 or more'
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give two arrays of one length, or the features alone, each with weight 1.';
    ELSIF array_position(features, NULL) IS NOT NULL
        OR NOT EXISTS (
            SELECT FROM unnest(features, weights) AS f (feature, weight)
            WHERE weights IS NULL OR round(f.weight * 65536) > 0
        )
    THEN
        RAISE EXCEPTION 'a simhash needs a feature with a weight above 0, and no NULL'
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give the 64-bit hashes of the features as an array.';
    END IF;
    SELECT bit_or(CASE WHEN v.vote > 0 THEN 1::bigint << v.bit ELSE 0 END) INTO made
    FROM (
        SELECT
            b.bit,
            sum(
                CASE WHEN weights IS NULL THEN 1 ELSE round(f.weight * 65536)::bigint END
                * (2 * (f.feature >> b.bit & 1) - 1)
            ) AS vote
        FROM unnest(features, weights) AS f (feature, weight)
        CROSS JOIN generate_series(0, 63) AS b (bit)
        GROUP BY b.bit
    ) AS v;
    RETURN made;
END
$$;

COMMENT ON FUNCTION pgsimhash.simhash(bigint[], double precision[]) IS
    'The simhash of the 64-bit hashes of features and their weights, by default 1 each.';

-- Internal functions, which may change with any release.

-- The same as verified in pgsimhash/hashing/signature.py, with the same numbers. Not STRICT, so
-- that PostgreSQL inlines it; a page without a signature confirms every match.
CREATE FUNCTION pgsimhash._verified(
    distance integer, a_high bigint, a_low bigint, b_high bigint, b_low bigint
) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN pgsimhash.signature_distance(a_high, a_low, b_high, b_low)
        > CASE WHEN distance <= 5 THEN 28 ELSE 22 END IS NOT TRUE;

COMMENT ON FUNCTION pgsimhash._verified(integer, bigint, bigint, bigint, bigint) IS
    'Whether the signatures of both pages confirm a match at this distance.';

-- Lookups of small radii use masks that layouts keep as constants.
CREATE FUNCTION pgsimhash._masks(width integer, radius integer) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    BEGIN ATOMIC
        WITH RECURSIVE masks (mask, below, bits) AS (
            SELECT 0::bigint, width, 0
            UNION ALL
            SELECT mask | (1::bigint << bit), bit, bits + 1
            FROM masks CROSS JOIN LATERAL generate_series(0, below - 1) AS bit
            WHERE bits < radius
        )
        SELECT coalesce(array_agg(mask), '{}') FROM masks WHERE radius >= 0;
    END;

COMMENT ON FUNCTION pgsimhash._masks(integer, integer) IS
    'Every mask of the lowest width bits with at most radius bits set.';

-- Collections: their names, their locks, and who may change them.

-- Writers are locked out: they write before or after the change of names, and notice it.
CREATE FUNCTION pgsimhash.rename_collection(
    old_name text, new_name text, swap boolean DEFAULT false
) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    locked integer[];
    present integer[];
    other constant text := gen_random_uuid();
BEGIN
    LOOP
        SELECT array_agg(c.collection_id ORDER BY c.collection_id) INTO present
        FROM pgsimhash.collections AS c
        WHERE c.name IN (old_name, new_name);
        -- Another session may have renamed one before it was locked.
        EXIT WHEN present IS NOT DISTINCT FROM locked;
        PERFORM pgsimhash._lock_collections(present, true);
        locked := present;
    END LOOP;
    PERFORM pgsimhash._id_of(old_name);
    IF coalesce(new_name, '') = '' THEN
        RAISE EXCEPTION 'the name of a collection is empty'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give one.';
    ELSIF old_name = new_name THEN
        RETURN;
    ELSIF swap THEN
        PERFORM pgsimhash._id_of(new_name);
        -- Names must be unique at any moment.
        UPDATE pgsimhash.collections SET name = other WHERE name = new_name;
    ELSIF EXISTS (SELECT FROM pgsimhash.collections AS c WHERE c.name = new_name) THEN
        RAISE EXCEPTION 'collection "%" exists already', new_name
            USING ERRCODE = 'unique_violation',
            HINT = 'Give another name, or swap the two names (swap, --swap).';
    END IF;
    UPDATE pgsimhash.collections SET name = new_name WHERE name = old_name;
    UPDATE pgsimhash.collections SET name = old_name WHERE name = other;
END
$$;

COMMENT ON FUNCTION pgsimhash.rename_collection(text, text, boolean) IS
    'Renames a collection, or swaps the names of two.';

CREATE FUNCTION pgsimhash.count_simhashes(collection text) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    counted bigint;
BEGIN
    EXECUTE format(
        'SELECT count(*) FROM pgsimhash.collections AS c JOIN %s AS s USING (collection_id) '
        'WHERE c.name = $1',
        pgsimhash._name_for(collection, 'simhashes')
    ) INTO counted USING collection;
    RETURN counted;
END
$$;

COMMENT ON FUNCTION pgsimhash.count_simhashes(text) IS
    'The number of distinct simhashes of a collection.';

-- The lock of add_page. A transaction that first writes your own rows must call this before.
CREATE FUNCTION pgsimhash.lock_collection(collection text DEFAULT 'default') RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM pgsimhash._lock_collection(collection);
END
$$;

COMMENT ON FUNCTION pgsimhash.lock_collection(text) IS
    'Locks a collection against other writers until the transaction ends; lookups continue.';

-- Internal functions, which may change with any release.

CREATE FUNCTION pgsimhash._id_of(collection text) RETURNS integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own_id constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
BEGIN
    IF own_id IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'undefined_object',
            MESSAGE = 'collection "' || coalesce(collection, 'NULL') || '" does not exist',
            HINT = 'SELECT name FROM pgsimhash.collections lists the existing ones.';
    END IF;
    RETURN own_id;
END
$$;

COMMENT ON FUNCTION pgsimhash._id_of(text) IS
    'The id of a collection; an error if no collection has this name.';

-- The timeouts are not part of the query, which Citus runs on another node.
CREATE FUNCTION pgsimhash._collection_to_write(
    collection text,
    lock_timeout text,
    otherwise text,
    statement_timeout text,
    statement_otherwise text
) RETURNS TABLE (
    collection_id integer,
    name text,
    scheme text,
    layout text,
    default_distance smallint,
    keep_markdown boolean,
    normalize_urls boolean,
    source_id integer
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own_locks constant text := current_setting('lock_timeout');
    own_statements constant text := current_setting('statement_timeout');
BEGIN
    PERFORM
        set_config(
            'statement_timeout',
            coalesce(
                statement_timeout,
                CASE
                    WHEN own_statements = '0' AND (lock_timeout IS NOT NULL OR own_locks = '0')
                    THEN statement_otherwise
                    ELSE own_statements
                END
            ),
            true
        ),
        set_config('lock_timeout', coalesce(lock_timeout, nullif(own_locks, '0'), otherwise), true),
        set_config(
            'idle_in_transaction_session_timeout',
            coalesce(
                nullif(current_setting('idle_in_transaction_session_timeout'), '0'), otherwise
            ),
            true
        );
    RETURN QUERY
    SELECT
        c.collection_id, c.name, c.scheme, c.layout, c.default_distance, c.keep_markdown,
        c.normalize_urls, r.source_id
    FROM pgsimhash.collections AS c
    LEFT JOIN pgsimhash.rebuilds AS r ON r.collection_id = c.collection_id
    WHERE c.name = collection;
END
$$;

COMMENT ON FUNCTION pgsimhash._collection_to_write(text, text, text, text, text) IS
    'A collection; it also sets the timeouts of the transaction, to save a statement.';

-- The functions of the default layout call those of other layouts by these names.
CREATE FUNCTION pgsimhash._name_for(collection text, name text) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN format(
        'pgsimhash.%I', _name_for.name || pgsimhash._suffix_of(pgsimhash._id_of(collection))
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._name_for(text, text) IS
    'The name of a table or function for the layout of a collection.';

CREATE FUNCTION pgsimhash._check_lookup(distance integer, layout text, nulls boolean)
RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    largest constant integer := (
        SELECT l.largest_distance FROM pgsimhash.layouts AS l WHERE l.name = layout
    );
BEGIN
    IF distance IS NULL OR distance NOT BETWEEN 0 AND largest THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = 'layout ' || layout || ' does not support distance '
                || coalesce(distance::text, 'NULL'),
            HINT = 'Give a distance from 0 to ' || largest || '.';
    END IF;
    IF nulls THEN
        RAISE EXCEPTION 'a query simhash is NULL'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Omit it from the lookup.';
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._check_lookup(integer, text, boolean) IS
    'Raises an error if the layout does not support a distance, or a query is NULL.';

-- With one snapshot for the whole transaction, rows that another writer committed during a wait for
-- a lock would be invisible, and so would a new layout of the collection.
CREATE FUNCTION pgsimhash._check_isolation() RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION
            'the transaction''s isolation level is %, which misses changes of other writers',
            current_setting('transaction_isolation')
            USING ERRCODE = 'invalid_transaction_state', HINT = 'Set it to READ COMMITTED.';
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._check_isolation() IS
    'Raises an error if statements of the transaction do not see what others have committed.';

-- Rows hidden by a policy would count as deleted, and simhashes of hidden pages would be removed.
CREATE FUNCTION pgsimhash._check_row_security() RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    hidden constant text := (
        SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.relname)
        FROM pg_class AS c
        WHERE c.relrowsecurity
            AND row_security_active(c.oid)
            AND c.relnamespace = (
                SELECT p.relnamespace FROM pg_class AS p WHERE p.oid = 'pgsimhash.pages'::regclass
            )
    );
BEGIN
    IF hidden IS NOT NULL THEN
        RAISE EXCEPTION 'row security may hide rows of % from "%"', hidden, current_user
            USING ERRCODE = 'invalid_role_specification',
            HINT = 'Use a role that sees all of them: a superuser, one with BYPASSRLS, or the '
                'owner of the tables, if security is not forced.';
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._check_row_security() IS
    'Raises an error if the role may not see all rows of the schema''s tables.';

-- Loaders share a row (FOR KEY SHARE), writers exclude each other (FOR NO KEY UPDATE), and
-- deletions exclude both (FOR UPDATE). Rows are locked in the order of their ids, so that no two
-- sessions wait for each other; rows of deleted collections are skipped. Strengths are 1, 2 and 3:
-- two of them exclude each other if their sum is 4 or more.
--
-- PostgreSQL does not report who locked a row. So a shared advisory lock, which blocks nobody,
-- records the process, the collection and the strength.
--
-- It waits in pieces, and a warning between them names the holders: the client receives it at once.
-- A piece is at least as long as the detection of deadlocks takes. Citus forwards a setting to the
-- node of the row if it is SET LOCAL.
CREATE FUNCTION pgsimhash._lock_rows(collection_ids integer[], strength integer) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own constant integer := 'pgsimhash.collections'::regclass::oid::integer;
    given constant text := current_setting('lock_timeout');
    patience constant interval := nullif(given::interval, interval '0');
    on_citus constant boolean := coalesce(
        current_setting('citus.propagate_set_commands', true) = 'local', false
    );
    began constant timestamptz := clock_timestamp();
    piece interval := interval '5 s';
    waited interval;
    names text;
    holders text;
    ends text;
BEGIN
    LOOP
        BEGIN
            PERFORM set_config(
                'lock_timeout',
                greatest(
                    1, ceil(1000 * extract(
                        epoch FROM least(piece, began + patience - clock_timestamp())
                    ))::integer
                )::text,
                true
            );
            IF on_citus THEN
                EXECUTE 'SET LOCAL lock_timeout TO ' || quote_literal(current_setting('lock_timeout'));
            END IF;
            CASE strength
                WHEN 1 THEN
                    PERFORM FROM pgsimhash.collections AS c
                    WHERE c.collection_id = ANY (collection_ids)
                    ORDER BY c.collection_id FOR KEY SHARE;
                WHEN 2 THEN
                    PERFORM FROM pgsimhash.collections AS c
                    WHERE c.collection_id = ANY (collection_ids)
                    ORDER BY c.collection_id FOR NO KEY UPDATE;
                WHEN 3 THEN
                    PERFORM FROM pgsimhash.collections AS c
                    WHERE c.collection_id = ANY (collection_ids)
                    ORDER BY c.collection_id FOR UPDATE;
            END CASE;
            PERFORM set_config('lock_timeout', given, true);
            IF on_citus THEN
                EXECUTE 'SET LOCAL lock_timeout TO ' || quote_literal(given);
            END IF;
            PERFORM pg_advisory_xact_lock_shared(own, 4 * c + strength)
            FROM unnest(collection_ids) AS c;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            waited := clock_timestamp() - began;
        END;
        -- Separate for Citus: the next statement only reads this node.
        names := (
            SELECT string_agg(format('"%s"', c.name), ', ' ORDER BY c.name)
            FROM pgsimhash.collections AS c
            WHERE c.collection_id = ANY (collection_ids)
        );
        SELECT format(
            '%s s for collection %s, which %s',
            round(extract(epoch FROM waited)), names,
            coalesce(string_agg(h.who, ' and ' ORDER BY h.pid) || ' holds', 'others wait for too')
        ), string_agg(format('SELECT pg_terminate_backend(%s)', h.pid), '; ' ORDER BY h.pid)
            FILTER (WHERE h.pid IS NOT NULL)
        INTO holders, ends
        FROM (
            SELECT DISTINCT l.pid, CASE
                WHEN l.pid IS NULL THEN 'a prepared transaction (pg_prepared_xacts)'
                ELSE format('process %s (application "%s", user "%s"',
                    l.pid, a.application_name, a.usename)
                    -- Only the same role and monitors see this.
                    || coalesce(', ' || a.state, '')
                    || coalesce(format(' since %s', a.state_change::timestamptz(0)), '') || ')'
            END AS who
            FROM pg_locks AS l
            LEFT JOIN pg_stat_activity AS a USING (pid)
            WHERE l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
                AND l.database = (
                    SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()
                )
                AND l.locktype = 'advisory' AND l.objsubid = 2
                AND l.classid::bigint = own::bigint & 4294967295
                AND l.objid::bigint / 4 = ANY (collection_ids)
                AND l.objid::bigint % 4 + strength >= 4
        ) AS h;
        IF waited >= patience THEN
            RAISE EXCEPTION 'gave up after waiting %', holders
                USING ERRCODE = 'lock_not_available', HINT = concat_ws(
                    ', ', 'To end it: ' || ends, 'to wait longer, raise lock_timeout'
                );
        END IF;
        RAISE WARNING 'waiting %', holders USING ERRCODE = 'lock_not_available';
        piece := 2 * piece;
    END LOOP;
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_rows(integer[], integer) IS
    'Locks the rows of collections until the commit, with warnings during the wait; lock_timeout '
    'limits the whole wait.';

-- All sessions lock in the order of the ids, so that no two wait for each other. Functions that
-- remove or move rows exclude loaders too.
CREATE FUNCTION pgsimhash._lock_collections(
    collection_ids integer[], loaders boolean DEFAULT false
) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own constant integer := 'pgsimhash.collections'::regclass::oid::integer;
    wanted constant integer[] := ARRAY(
        SELECT DISTINCT u FROM unnest(collection_ids) AS u WHERE u IS NOT NULL ORDER BY u
    );
BEGIN
    PERFORM pgsimhash._check_isolation();
    IF loaders THEN
        PERFORM pgsimhash._check_row_security();
    END IF;
    PERFORM pgsimhash._lock_rows(wanted, CASE WHEN loaders THEN 3 ELSE 2 END);
    PERFORM set_config(
        'simhashes.locked',
        concat(
            current_setting('simhashes.locked', true),
            (
                SELECT string_agg(format(' %s.%s ', own, u), '')
                FROM unnest(wanted) AS u
                WHERE NOT pgsimhash._is_locked(u)
            )
        ),
        true
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_collections(integer[], boolean) IS
    'Locks collections until the commit: nobody else changes their pages or adds standalone '
    'simhashes.';

-- A row does not show whether this transaction locked it.
CREATE FUNCTION pgsimhash._is_locked(own_id integer) RETURNS boolean
    LANGUAGE sql STABLE
    RETURN strpos(
        coalesce(current_setting('simhashes.locked', true), ''),
        format(' %s.%s ', 'pgsimhash.collections'::regclass::oid::integer, own_id)
    ) > 0;

COMMENT ON FUNCTION pgsimhash._is_locked(integer) IS
    'Whether _lock_collections locked a collection in this transaction.';

CREATE FUNCTION pgsimhash._lock_collection(collection text, loaders boolean DEFAULT false)
RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted integer;
    locked integer;
BEGIN
    LOOP
        wanted := pgsimhash._writable_collection(collection);
        -- The name may have been given to another collection during the wait.
        EXIT WHEN wanted = locked;
        PERFORM pgsimhash._lock_collections(ARRAY[wanted], loaders);
        locked := wanted;
    END LOOP;
    RETURN wanted;
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_collection(text, boolean) IS
    'Locks a collection by its name, like _lock_collections, and returns its id.';

CREATE FUNCTION pgsimhash._hold_collection(collection text) RETURNS integer
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted integer;
    held integer;
BEGIN
    PERFORM pgsimhash._check_isolation();
    LOOP
        wanted := pgsimhash._writable_collection(collection);
        EXIT WHEN wanted = held;
        PERFORM pgsimhash._lock_rows(ARRAY[wanted], 1);
        held := wanted;
    END LOOP;
    RETURN wanted;
END
$$;

COMMENT ON FUNCTION pgsimhash._hold_collection(text) IS
    'Prevents renaming, deleting or rebuilding a collection until the commit, and returns its id.';

CREATE FUNCTION pgsimhash._writable_collection(collection text) RETURNS integer
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    present record;
BEGIN
    SELECT own.own_id, s.name AS source INTO present
    FROM (SELECT pgsimhash._id_of(collection) AS own_id) AS own
    LEFT JOIN pgsimhash.rebuilds AS r ON r.collection_id = own.own_id
    LEFT JOIN pgsimhash.collections AS s ON s.collection_id = r.source_id;
    IF present.source IS NOT NULL THEN
        RAISE EXCEPTION 'collection "%" is being built from "%" and is read-only',
            collection, present.source
            USING ERRCODE = 'object_in_use',
            HINT = format(
                'Finish that: pgsimhash collection rebuild %s --into %s.',
                present.source, collection
            );
    END IF;
    RETURN present.own_id;
END
$$;

COMMENT ON FUNCTION pgsimhash._writable_collection(text) IS
    'The id of a collection; an error if it is being built from another.';

CREATE FUNCTION pgsimhash._suffix_of(own_id integer) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (
        SELECT l.suffix
        FROM pgsimhash.collections AS c JOIN pgsimhash.layouts AS l ON l.name = c.layout
        WHERE c.collection_id = own_id
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._suffix_of(integer) IS
    'The suffix of the table and functions of a collection''s layout.';

-- One value with eight bytes per simhash: five times as fast as COPY, which sends a message per
-- row.
CREATE FUNCTION pgsimhash._simhash_slice(collection text, number integer, slices integer)
RETURNS bytea
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    slice bytea;
BEGIN
    EXECUTE format(
        'SELECT string_agg(int8send(s.simhash), ''''::bytea) '
        'FROM pgsimhash.collections AS c JOIN pgsimhash.layouts AS l ON l.name = c.layout '
        'JOIN %s AS s '
        'ON s.prefix_1 >= (c.collection_id::bigint << 40)'
        ' + (($2::bigint << l.prefix_bits) / $3) '
        'AND s.prefix_1 < (c.collection_id::bigint << 40)'
        ' + ((($2 + 1)::bigint << l.prefix_bits) / $3) '
        'WHERE c.name = $1',
        pgsimhash._name_for(collection, 'simhashes')
    ) INTO slice USING collection, number, slices;
    RETURN slice;
END
$$;

COMMENT ON FUNCTION pgsimhash._simhash_slice(text, integer, integer) IS
    'Slice number 0, 1, ... of a collection''s simhashes: eight bytes each, big-endian.';

-- The rows of a large table are not counted but estimated from the planner's statistics.
CREATE FUNCTION pgsimhash._bytes_on_disk(
    tables text[], own_rows bigint, OUT whole bigint, OUT share bigint
)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    all_rows double precision;
BEGIN
    IF pgsimhash._is_distributed() THEN
        whole := (SELECT sum(citus_total_relation_size(t::regclass)) FROM unnest(tables) AS t);
    ELSE
        whole := (SELECT sum(pg_total_relation_size(t::regclass)) FROM unnest(tables) AS t);
    END IF;
    SELECT
        c.reltuples::double precision / c.relpages
            * (pg_relation_size(c.oid) / current_setting('block_size')::bigint)
    INTO all_rows
    FROM pg_class AS c
    WHERE c.oid = tables[1]::regclass AND c.relpages > 1000 AND c.reltuples > 0;
    IF all_rows IS NULL THEN
        EXECUTE 'SELECT count(*) FROM ' || tables[1] INTO all_rows;
    END IF;
    share := whole * (own_rows / greatest(all_rows, own_rows, 1));
END
$$;

COMMENT ON FUNCTION pgsimhash._bytes_on_disk(text[], bigint) IS
    'The bytes of tables with indexes, and the share of this many rows of the first one.';

-- Collections that are being built are copies, and do not count.
CREATE FUNCTION pgsimhash._siblings(own_id integer) RETURNS integer[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (
        SELECT array_agg(c.collection_id ORDER BY c.collection_id)
        FROM pgsimhash.collections AS own
        LEFT JOIN pgsimhash.rebuilds AS o ON o.collection_id = own.collection_id
        JOIN pgsimhash.collections AS c ON c.scheme = own.scheme
        LEFT JOIN pgsimhash.rebuilds AS r ON r.collection_id = c.collection_id
        WHERE own.collection_id = own_id
            AND (r.source_id IS NULL OR c.collection_id = own_id)
            AND c.collection_id IS DISTINCT FROM o.source_id
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._siblings(integer) IS
    'All collections of the scheme of a collection, including itself: the scope global.';

-- Writes to the tables of simhashes, and the times when pages were seen.

CREATE FUNCTION pgsimhash.add_simhashes(collection text, simhashes bigint[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._hold_collection(collection);
    added bigint;
BEGIN
    IF EXISTS (SELECT FROM unnest(simhashes) AS u WHERE u IS NULL) THEN
        RAISE EXCEPTION 'a simhash is NULL'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Omit it.';
    END IF;
    added := pgsimhash._put_simhashes(wanted, simhashes, true);
    PERFORM pgsimhash._advance_epoch(wanted);
    RETURN added;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_simhashes(text, bigint[]) IS
    'Adds standalone simhashes to a collection and returns how many were new.';

-- Internal functions, which may change with any release.

-- Caches depend on this; see the table.
CREATE FUNCTION pgsimhash._advance_epoch(own_id integer) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    INSERT INTO pgsimhash.cache_epochs (collection_id) VALUES (own_id);
    -- Merges the rows now and then. Under an older snapshot this would fail after changes of
    -- others.
    IF random() < 0.02 AND current_setting('transaction_isolation') = 'read committed' THEN
        WITH gone AS (
            DELETE FROM pgsimhash.cache_epochs AS l
            WHERE l.ctid = ANY (ARRAY(SELECT o.ctid FROM pgsimhash.cache_epochs AS o FOR UPDATE SKIP LOCKED))
            RETURNING l.collection_id, l.epoch
        )
        INSERT INTO pgsimhash.cache_epochs (collection_id, epoch)
        SELECT g.collection_id, sum(g.epoch)::bigint FROM gone AS g GROUP BY g.collection_id;
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._advance_epoch(integer) IS
    'Tells caches that simhashes were added, to any collection if it is NULL.';

CREATE FUNCTION pgsimhash._note_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    PERFORM pgsimhash._advance_epoch(NULL);
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION pgsimhash._note_inserted() IS
    'Advances the epoch after an INSERT of simhashes, unless the surrounding function does.';

-- Citus runs triggers on the node of the shard, which does not know this session's settings. So the
-- tables of a schema that Citus keeps have no triggers, and only these functions insert into them.
CREATE FUNCTION pgsimhash._is_distributed() RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    answer boolean := false;
BEGIN
    IF to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS ('
            'SELECT FROM pg_catalog.pg_dist_schema AS s '
            'JOIN pg_catalog.pg_class AS c ON c.relnamespace = s.schemaid '
            'WHERE c.oid = ''pgsimhash.pages''::regclass)'
        INTO answer;
    END IF;
    RETURN answer;
END
$$;

COMMENT ON FUNCTION pgsimhash._is_distributed() IS
    'Whether Citus keeps the tables on one of its nodes.';

-- Each simhash once, because a row can be updated only once, and in the order of the first index,
-- so that two sessions that add the same ones do not wait for each other. xmax identifies new rows.
CREATE FUNCTION pgsimhash._put_simhashes(own_id integer, simhashes bigint[], standalone boolean)
RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own_table constant text := 'simhashes' || pgsimhash._suffix_of(own_id);
    statement text;
    added bigint;
BEGIN
    PERFORM set_config('simhashes.noted', 'yes', true);
    IF own_table = 'simhashes' AND NOT standalone THEN
        -- The default layout needs no dynamic statement, which would be planned each time.
        INSERT INTO pgsimhash.simhashes (collection_id, simhash, standalone)
        SELECT own_id, s.simhash, false
        FROM (SELECT u FROM unnest(simhashes) AS u GROUP BY u ORDER BY u < 0, u) AS s (simhash)
        ON CONFLICT ON CONSTRAINT simhashes_pkey DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
        PERFORM set_config('simhashes.noted', 'no', true);
        RETURN added;
    END IF;
    statement := format(
        'INSERT INTO pgsimhash.%1$I AS o (collection_id, simhash, standalone) '
        'SELECT $1, s.simhash, $3 FROM ('
        'SELECT u FROM unnest($2) AS u GROUP BY u ORDER BY u < 0, u'
        ') AS s (simhash) '
        'ON CONFLICT ON CONSTRAINT %2$I ',
        own_table, own_table || '_pkey'
    );
    IF standalone THEN
        EXECUTE format(
            'WITH added AS ('
            '%s DO UPDATE SET standalone = true WHERE NOT o.standalone RETURNING o.xmax = 0 AS is_new'
            ') SELECT count(*) FROM added WHERE is_new',
            statement
        ) INTO added USING own_id, simhashes, standalone;
    ELSE
        EXECUTE statement || 'DO NOTHING' USING own_id, simhashes, standalone;
        GET DIAGNOSTICS added = ROW_COUNT;
    END IF;
    PERFORM set_config('simhashes.noted', 'no', true);
    RETURN added;
END
$$;

COMMENT ON FUNCTION pgsimhash._put_simhashes(integer, bigint[], boolean) IS
    'Adds simhashes to a collection, standalone or with pages, and returns how many were new.';

-- With the same ids. The caller has locked the target collection.
CREATE FUNCTION pgsimhash._copy_pages(
    source_id integer, own_id integer, page_ids bigint[], keep_markdown boolean
) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    -- So the trigger does not add their simhashes again.
    PERFORM set_config('simhashes.noted', 'yes', true);
    INSERT INTO pgsimhash.pages (
        collection_id, page_id, url, simhash, fetched_at, run_id, title, canonical_url, language,
        features, tokens, html_bytes, html_digest, text_digest, structure, signature_high,
        signature_low, markdown, duplicate_of, distance
    )
    SELECT
        own_id, p.page_id, p.url, p.simhash, p.fetched_at, p.run_id, p.title, p.canonical_url,
        p.language, p.features, p.tokens, p.html_bytes, p.html_digest, p.text_digest, p.structure,
        p.signature_high, p.signature_low, CASE WHEN keep_markdown THEN p.markdown END,
        p.duplicate_of, p.distance
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = _copy_pages.source_id AND p.page_id = ANY (page_ids)
    ORDER BY p.page_id;
    PERFORM pgsimhash._put_simhashes(own_id, ARRAY(
        SELECT p.simhash
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id AND p.page_id = ANY (page_ids)
    ), false);
END
$$;

COMMENT ON FUNCTION pgsimhash._copy_pages(integer, integer, bigint[], boolean) IS
    'Copies pages of one collection to another, with their simhashes.';

-- No index has a column that changes, so only the first time writes to indexes.
CREATE FUNCTION pgsimhash._see_pages(
    own_id integer, page_ids bigint[], seen_at timestamptz[]
) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO pgsimhash.last_seen AS s (collection_id, page_id, seen_at)
    SELECT own_id, u.page_id, max(coalesce(u.seen_at, now()))
    FROM unnest(page_ids, _see_pages.seen_at) AS u (page_id, seen_at)
    GROUP BY u.page_id
    ORDER BY u.page_id
    ON CONFLICT (collection_id, page_id) DO UPDATE SET seen_at = excluded.seen_at
    WHERE s.seen_at < excluded.seen_at;
END
$$;

COMMENT ON FUNCTION pgsimhash._see_pages(integer, bigint[], timestamptz[]) IS
    'Records when stored versions were seen again; NULL is now, and the latest time is kept.';

CREATE INDEX simhashes_prefix_2_idx
    ON pgsimhash.simhashes (prefix_2, simhash) WITH (fillfactor = 97);

CREATE INDEX simhashes_prefix_3_idx
    ON pgsimhash.simhashes (prefix_3, simhash) WITH (fillfactor = 97);

-- The radius of each permutation for a distance, -1 for a permutation that is not probed. Not
-- STRICT, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash.radii(distance integer) RETURNS integer[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE distance
        WHEN 0 THEN '{0, -1, -1}'::integer[]
        WHEN 1 THEN '{0, 0, -1}'::integer[]
        WHEN 2 THEN '{0, 0, 0}'::integer[]
        WHEN 3 THEN '{1, 0, 0}'::integer[]
        WHEN 4 THEN '{1, 1, 0}'::integer[]
        WHEN 5 THEN '{1, 1, 1}'::integer[]
        WHEN 6 THEN '{2, 1, 1}'::integer[]
        WHEN 7 THEN '{2, 2, 1}'::integer[]
        WHEN 8 THEN '{2, 2, 2}'::integer[]
        WHEN 9 THEN '{3, 2, 2}'::integer[]
        WHEN 10 THEN '{3, 3, 2}'::integer[]
        WHEN 11 THEN '{3, 3, 3}'::integer[]
        WHEN 12 THEN '{4, 3, 3}'::integer[]
    END;

COMMENT ON FUNCTION pgsimhash.radii(integer) IS
    'How many prefix bits a probe of each permutation may flip, for layout 22+21+21.';

-- A prefix as in the column prefix_<permutation>. Not STRICT, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash.prefix(
    simhash bigint, permutation integer, collection_id integer
) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE permutation
        WHEN 1 THEN (collection_id::bigint << 40) | ((simhash >> 42) & 4194303)
        WHEN 2 THEN (collection_id::bigint << 40) | ((simhash >> 21) & 2097151)
        WHEN 3 THEN (collection_id::bigint << 40) | ((simhash >> 0) & 2097151)
    END;

COMMENT ON FUNCTION pgsimhash.prefix(bigint, integer, integer) IS
    'The value of the column prefix_<permutation> for a simhash of the collection.';

-- All changes of at most radius bits of a prefix. Not STRICT, so that plans contain constants
-- instead of a call.
CREATE FUNCTION pgsimhash._flips(permutation integer, radius integer)
RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN radius < 0 THEN '{}'::bigint[]
        WHEN radius = 0 THEN '{0}'::bigint[]
        WHEN permutation IN (1) THEN CASE radius
            WHEN 1 THEN '{0,1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,1048576,2097152}'::bigint[]
            WHEN 2 THEN '{0,1,2,3,4,5,6,8,9,10,12,16,17,18,20,24,32,33,34,36,40,48,64,65,66,68,72,80,96,128,129,130,132,136,144,160,192,256,257,258,260,264,272,288,320,384,512,513,514,516,520,528,544,576,640,768,1024,1025,1026,1028,1032,1040,1056,1088,1152,1280,1536,2048,2049,2050,2052,2056,2064,2080,2112,2176,2304,2560,3072,4096,4097,4098,4100,4104,4112,4128,4160,4224,4352,4608,5120,6144,8192,8193,8194,8196,8200,8208,8224,8256,8320,8448,8704,9216,10240,12288,16384,16385,16386,16388,16392,16400,16416,16448,16512,16640,16896,17408,18432,20480,24576,32768,32769,32770,32772,32776,32784,32800,32832,32896,33024,33280,33792,34816,36864,40960,49152,65536,65537,65538,65540,65544,65552,65568,65600,65664,65792,66048,66560,67584,69632,73728,81920,98304,131072,131073,131074,131076,131080,131088,131104,131136,131200,131328,131584,132096,133120,135168,139264,147456,163840,196608,262144,262145,262146,262148,262152,262160,262176,262208,262272,262400,262656,263168,264192,266240,270336,278528,294912,327680,393216,524288,524289,524290,524292,524296,524304,524320,524352,524416,524544,524800,525312,526336,528384,532480,540672,557056,589824,655360,786432,1048576,1048577,1048578,1048580,1048584,1048592,1048608,1048640,1048704,1048832,1049088,1049600,1050624,1052672,1056768,1064960,1081344,1114112,1179648,1310720,1572864,2097152,2097153,2097154,2097156,2097160,2097168,2097184,2097216,2097280,2097408,2097664,2098176,2099200,2101248,2105344,2113536,2129920,2162688,2228224,2359296,2621440,3145728}'::bigint[]
            ELSE pgsimhash._masks(22, radius)
        END
        WHEN permutation IN (2, 3) THEN CASE radius
            WHEN 1 THEN '{0,1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,1048576}'::bigint[]
            WHEN 2 THEN '{0,1,2,3,4,5,6,8,9,10,12,16,17,18,20,24,32,33,34,36,40,48,64,65,66,68,72,80,96,128,129,130,132,136,144,160,192,256,257,258,260,264,272,288,320,384,512,513,514,516,520,528,544,576,640,768,1024,1025,1026,1028,1032,1040,1056,1088,1152,1280,1536,2048,2049,2050,2052,2056,2064,2080,2112,2176,2304,2560,3072,4096,4097,4098,4100,4104,4112,4128,4160,4224,4352,4608,5120,6144,8192,8193,8194,8196,8200,8208,8224,8256,8320,8448,8704,9216,10240,12288,16384,16385,16386,16388,16392,16400,16416,16448,16512,16640,16896,17408,18432,20480,24576,32768,32769,32770,32772,32776,32784,32800,32832,32896,33024,33280,33792,34816,36864,40960,49152,65536,65537,65538,65540,65544,65552,65568,65600,65664,65792,66048,66560,67584,69632,73728,81920,98304,131072,131073,131074,131076,131080,131088,131104,131136,131200,131328,131584,132096,133120,135168,139264,147456,163840,196608,262144,262145,262146,262148,262152,262160,262176,262208,262272,262400,262656,263168,264192,266240,270336,278528,294912,327680,393216,524288,524289,524290,524292,524296,524304,524320,524352,524416,524544,524800,525312,526336,528384,532480,540672,557056,589824,655360,786432,1048576,1048577,1048578,1048580,1048584,1048592,1048608,1048640,1048704,1048832,1049088,1049600,1050624,1052672,1056768,1064960,1081344,1114112,1179648,1310720,1572864}'::bigint[]
            ELSE pgsimhash._masks(21, radius)
        END
    END;

COMMENT ON FUNCTION pgsimhash._flips(integer, integer) IS
    'The masks of at most radius bits in the prefix of a permutation.';

CREATE FUNCTION pgsimhash.probes(
    simhash bigint, permutation integer, radius integer, collection_id integer
) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ARRAY(
        SELECT own.prefix # flip
        FROM (
            SELECT pgsimhash.prefix(simhash, permutation, collection_id) AS prefix
            OFFSET 0
        ) AS own
        CROSS JOIN unnest(pgsimhash._flips(permutation, radius)) AS flip
    );

COMMENT ON FUNCTION pgsimhash.probes(bigint, integer, integer, integer) IS
    'The values of prefix_<permutation> that a lookup of this radius must visit.';

-- Many queries at once: each index is walked in its own order, and OFFSET 0 keeps the planner from
-- reversing the join.
CREATE FUNCTION pgsimhash.near_duplicates(
    simhashes bigint[], distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.numbered_match
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    given_distance constant integer := near_duplicates.distance;
    own_id integer;
    own_layout text;
    max_distance integer;
    radii integer[];
    flips_1 bigint[];
    flips_2 bigint[];
    flips_3 bigint[];
BEGIN
    SELECT c.collection_id, c.layout, coalesce(given_distance, c.default_distance)
    INTO own_id, own_layout, max_distance
    FROM pgsimhash.collections AS c WHERE c.name = collection;
    IF own_layout IS DISTINCT FROM '22+21+21' THEN
        RETURN QUERY EXECUTE
            'SELECT * FROM ' || pgsimhash._name_for(collection, 'near_duplicates') || '($1, $2, $3)'
            USING simhashes, given_distance, collection;
        RETURN;
    END IF;
    radii := pgsimhash.radii(max_distance);
    IF radii IS NULL OR array_position(simhashes, NULL) IS NOT NULL THEN
        PERFORM pgsimhash._check_lookup(max_distance, '22+21+21', array_position(simhashes, NULL) IS NOT NULL);
    END IF;
    flips_1 :=
        pgsimhash._flips(1, radii[1]);
    flips_2 :=
        pgsimhash._flips(2, radii[2]);
    flips_3 :=
        pgsimhash._flips(3, radii[3]);
    RETURN QUERY
        SELECT q.query_number, m.simhash, m.distance
        FROM (
            SELECT
                u.query,
                u.query_number,
                (own_id::bigint << 40)
                    | ((u.query >> 42) & 4194303) AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[1] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, q.query) AS distance
            FROM pgsimhash.simhashes AS s
            WHERE s.prefix_1 = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(flips_1) AS flip
                ))
                AND pgsimhash.hamming_distance(s.simhash, q.query) <= max_distance
            OFFSET 0
        ) AS m
        UNION ALL
        SELECT q.query_number, m.simhash, m.distance
        FROM (
            SELECT
                u.query,
                u.query_number,
                (own_id::bigint << 40)
                    | ((u.query >> 21) & 2097151) AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[2] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, q.query) AS distance
            FROM pgsimhash.simhashes AS s
            WHERE s.prefix_2 = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(flips_2) AS flip
                ))
                AND pgsimhash.hamming_distance(s.simhash, q.query) <= max_distance
                AND pgsimhash.bit_count((s.simhash # q.query) & (-4398046511104))
                    > radii[1]
            OFFSET 0
        ) AS m
        UNION ALL
        SELECT q.query_number, m.simhash, m.distance
        FROM (
            SELECT
                u.query,
                u.query_number,
                (own_id::bigint << 40)
                    | ((u.query >> 0) & 2097151) AS prefix
            FROM unnest(simhashes) WITH ORDINALITY AS u (query, query_number)
            WHERE radii[3] >= 0
            ORDER BY prefix
        ) AS q
        CROSS JOIN LATERAL (
            SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, q.query) AS distance
            FROM pgsimhash.simhashes AS s
            WHERE s.prefix_3 = ANY (ARRAY(
                    SELECT q.prefix # flip FROM unnest(flips_3) AS flip
                ))
                AND pgsimhash.hamming_distance(s.simhash, q.query) <= max_distance
                AND pgsimhash.bit_count((s.simhash # q.query) & (-4398046511104))
                    > radii[1]
                AND pgsimhash.bit_count((s.simhash # q.query) & (4398044413952))
                    > radii[2]
            OFFSET 0
        ) AS m
    ;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_duplicates(bigint[], integer, text) IS
    'near_duplicates for each simhash of an array; query_number counts from 1.';

-- The permutations with the fewest probes come first, and the first match ends the search.
CREATE FUNCTION pgsimhash.has_near_duplicate(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
DECLARE
    given_distance constant integer := has_near_duplicate.distance;
    own_id integer;
    own_layout text;
    max_distance integer;
    radii integer[];
    query constant bigint := has_near_duplicate.simhash;
    answer boolean;
    own_prefix bigint;
    probes bigint[];
BEGIN
    SELECT c.collection_id, c.layout, coalesce(given_distance, c.default_distance)
    INTO own_id, own_layout, max_distance
    FROM pgsimhash.collections AS c WHERE c.name = collection;
    IF own_layout IS DISTINCT FROM '22+21+21' THEN
        EXECUTE 'SELECT ' || pgsimhash._name_for(collection, 'has_near_duplicate') || '($1, $2, $3)'
            INTO answer USING query, given_distance, collection;
        RETURN answer;
    END IF;
    radii := pgsimhash.radii(max_distance);
    IF radii IS NULL OR query IS NULL THEN
        PERFORM pgsimhash._check_lookup(max_distance, '22+21+21', query IS NULL);
    END IF;
    own_prefix := pgsimhash.prefix(query, 3, own_id);
    IF radii[3] = 0 THEN
        probes := ARRAY[own_prefix];
    ELSE
        probes := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(3, radii[3])) AS flip
        );
    END IF;
    PERFORM FROM pgsimhash.simhashes AS s
    WHERE s.prefix_3 = ANY (probes)
        AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
    LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
    own_prefix := pgsimhash.prefix(query, 2, own_id);
    IF radii[2] = 0 THEN
        probes := ARRAY[own_prefix];
    ELSE
        probes := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(2, radii[2])) AS flip
        );
    END IF;
    PERFORM FROM pgsimhash.simhashes AS s
    WHERE s.prefix_2 = ANY (probes)
        AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
    LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
    own_prefix := pgsimhash.prefix(query, 1, own_id);
    IF radii[1] = 0 THEN
        probes := ARRAY[own_prefix];
    ELSE
        probes := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(1, radii[1])) AS flip
        );
    END IF;
    PERFORM FROM pgsimhash.simhashes AS s
    WHERE s.prefix_1 = ANY (probes)
        AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
    LIMIT 1;
    IF FOUND THEN
        RETURN true;
    END IF;
    RETURN false;
END
$$;

COMMENT ON FUNCTION pgsimhash.has_near_duplicate(bigint, integer, text) IS
    'Whether the collection has a simhash within a distance, by default the collection''s.';

DO $$
BEGIN
    IF NOT pgsimhash._is_distributed() THEN
        CREATE TRIGGER note_inserted
            AFTER INSERT ON pgsimhash.simhashes
            FOR EACH STATEMENT
            WHEN (current_setting('simhashes.noted', true) IS DISTINCT FROM 'yes')
            EXECUTE FUNCTION pgsimhash._note_inserted();
    END IF;
END
$$;

INSERT INTO pgsimhash.layouts (name, suffix, indexed, largest_distance, prefix_bits)
VALUES (
    '22+21+21', '', true,
    12, 22
);

-- Lookups. The first one is for the default layout, 22+21+21; layout.sql renders it for other
-- layouts, and the lookups of many simhashes at once. The other functions return pages.

-- Manku, Jain, Das Sarma (WWW 2007), section 3. Two simhashes within max_distance bits differ in
-- few bits of at least one bit block. So for each permutation the lookup visits all prefixes that
-- differ from the query's in at most radii[n] bits, and compares the simhashes that it finds there.
-- A match is reported once, by the first permutation whose probes reach it. The settings keep one
-- generic plan of index scans: the planner cannot estimate arrays of probes, and a new plan takes
-- longer than the lookup. ROWS keeps the plans of surrounding statements generic too.
CREATE FUNCTION pgsimhash.near_duplicates(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.match
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    ROWS 4
    AS $$
#variable_conflict use_column
DECLARE
    given_distance constant integer := near_duplicates.distance;
    own_id integer;
    own_layout text;
    max_distance integer;
    radii integer[];
    query constant bigint := near_duplicates.simhash;
    own_prefix bigint;
    probes_1 bigint[];
    probes_2 bigint[];
    probes_3 bigint[];
BEGIN
    SELECT c.collection_id, c.layout, coalesce(given_distance, c.default_distance)
    INTO own_id, own_layout, max_distance
    FROM pgsimhash.collections AS c WHERE c.name = collection;
    IF own_layout IS DISTINCT FROM '22+21+21' THEN
        RETURN QUERY EXECUTE
            'SELECT * FROM ' || pgsimhash._name_for(collection, 'near_duplicates') || '($1, $2, $3)'
            USING query, given_distance, collection;
        RETURN;
    END IF;
    radii := pgsimhash.radii(max_distance);
    IF radii IS NULL OR query IS NULL THEN
        PERFORM pgsimhash._check_lookup(max_distance, '22+21+21', query IS NULL);
    END IF;
    own_prefix := pgsimhash.prefix(query, 1, own_id);
    IF radii[1] = 0 THEN
        probes_1 := ARRAY[own_prefix];
    ELSE
        probes_1 := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(1, radii[1])) AS flip
        );
    END IF;
    own_prefix := pgsimhash.prefix(query, 2, own_id);
    IF radii[2] = 0 THEN
        probes_2 := ARRAY[own_prefix];
    ELSE
        probes_2 := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(2, radii[2])) AS flip
        );
    END IF;
    own_prefix := pgsimhash.prefix(query, 3, own_id);
    IF radii[3] = 0 THEN
        probes_3 := ARRAY[own_prefix];
    ELSE
        probes_3 := ARRAY(
            SELECT own_prefix # flip
            FROM unnest(pgsimhash._flips(3, radii[3])) AS flip
        );
    END IF;
    RETURN QUERY
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.simhashes AS s
        WHERE s.prefix_1 = ANY (probes_1)
            AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
        UNION ALL
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.simhashes AS s
        WHERE s.prefix_2 = ANY (probes_2)
            AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
            AND pgsimhash.bit_count((s.simhash # query) & (-4398046511104)) > radii[1]
        UNION ALL
        SELECT s.simhash, pgsimhash.hamming_distance(s.simhash, query)
        FROM pgsimhash.simhashes AS s
        WHERE s.prefix_3 = ANY (probes_3)
            AND pgsimhash.hamming_distance(s.simhash, query) <= max_distance
            AND pgsimhash.bit_count((s.simhash # query) & (-4398046511104)) > radii[1]
            AND pgsimhash.bit_count((s.simhash # query) & (4398044413952)) > radii[2]
        ;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_duplicates(bigint, integer, text) IS
    'Every simhash of the collection within a distance, by default the collection''s, with its '
    'distance.';

CREATE FUNCTION pgsimhash.near_pages(
    url text, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    asked constant text := near_pages.url;
    own_id constant integer := pgsimhash._id_of(collection);
    present record;
BEGIN
    SELECT p.simhash, p.signature_high, p.signature_low INTO present
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = own_id AND p.url = asked
    ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
    LIMIT 1;
    IF FOUND THEN
        RETURN QUERY
        SELECT *
        FROM pgsimhash._near_pages(
            collection, present.simhash, present.signature_high, present.signature_low,
            near_pages.distance, asked, NULL
        );
    ELSE
        PERFORM pgsimhash._check_lookup(
            coalesce(near_pages.distance, c.default_distance), c.layout, false
        )
        FROM pgsimhash.collections AS c WHERE c.collection_id = own_id;
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash.near_pages(text, integer, text) IS
    'Every other page within a distance of the page at a URL, by default the collection''s; '
    'present versions, nearest first. Empty for an unknown URL.';

CREATE FUNCTION pgsimhash.near_pages(
    simhash bigint, distance integer DEFAULT NULL, collection text DEFAULT 'default'
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN QUERY
    SELECT *
    FROM pgsimhash._near_pages(
        collection, near_pages.simhash, NULL, NULL, near_pages.distance, NULL, NULL
    );
END
$$;

COMMENT ON FUNCTION pgsimhash.near_pages(bigint, integer, text) IS
    'Every page within a distance of a simhash, by default the collection''s; present versions, '
    'nearest first.';

-- Internal functions, which may change with any release.

-- Only the first pages of each simhash are read, so that a limit is cheap even if ten thousand
-- pages share a simhash. BETWEEN requires an order that only one index has.
CREATE FUNCTION pgsimhash._near_pages(
    collection text, simhash bigint, signature_high bigint, signature_low bigint, distance integer,
    own_url text, most bigint
) RETURNS SETOF pgsimhash.near_page
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    sought constant bigint := _near_pages.simhash;
    own_high constant bigint := _near_pages.signature_high;
    own_low constant bigint := _near_pages.signature_low;
BEGIN
    RETURN QUERY
    SELECT p.url, m.distance, m.simhash, p.title, p.fetched_at, p.page_id
    FROM pgsimhash.near_duplicates(sought, _near_pages.distance, collection) AS m
    CROSS JOIN LATERAL (
        SELECT k.url, k.title, k.fetched_at, k.page_id
        FROM pgsimhash.pages AS k
        WHERE k.collection_id = own_id
            AND k.simhash BETWEEN m.simhash AND m.simhash
            AND (own_url IS NULL OR k.url <> own_url)
            AND pgsimhash._verified(m.distance, k.signature_high, k.signature_low, own_high, own_low)
            AND NOT EXISTS (
                SELECT FROM pgsimhash.pages AS newer
                WHERE newer.collection_id = k.collection_id
                    AND newer.url = k.url
                    AND newer.page_id > k.page_id
            )
        ORDER BY k.simhash, k.page_id
        LIMIT most
    ) AS p
    ORDER BY m.distance, p.page_id
    LIMIT most;
END
$$;

COMMENT ON FUNCTION pgsimhash._near_pages(
    text, bigint, bigint, bigint, integer, text, bigint
) IS 'The pages nearest to a simhash, verified by signatures, without one URL.';

-- Marks of two pages, which override their simhashes.

CREATE FUNCTION pgsimhash.mark(collection text, a text, b text, same boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._lock_collection(collection);
    unknown text;
BEGIN
    IF num_nulls(a, b, same) > 0 THEN
        RAISE EXCEPTION 'a mark needs two URLs, and whether their pages are the same'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Give both URLs, and true or false.';
    END IF;
    SELECT u INTO unknown
    FROM unnest(ARRAY[a, b]) AS u
    WHERE NOT EXISTS (
        SELECT FROM pgsimhash.pages AS p WHERE p.collection_id = wanted AND p.url = u
    );
    IF unknown IS NOT NULL THEN
        RAISE EXCEPTION 'collection "%" has no page at %', collection, unknown
            USING ERRCODE = 'no_data_found', HINT = 'Ingest the page first, or correct the URL.';
    ELSIF a = b THEN
        RAISE EXCEPTION 'a mark needs two different URLs, and both are %', a
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give another URL.';
    END IF;
    PERFORM pgsimhash._put_mark(collection, a, b, same);
END
$$;

COMMENT ON FUNCTION pgsimhash.mark(text, text, text, boolean) IS
    'Marks the pages at two URLs as the same or different, at any distance.';

CREATE FUNCTION pgsimhash.unmark(collection text, a text, b text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own_id constant integer := pgsimhash._hold_collection(unmark.collection);
BEGIN
    DELETE FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id
        AND m.url_a = least(a COLLATE "C", b COLLATE "C")
        AND m.url_b = greatest(a COLLATE "C", b COLLATE "C");
    RETURN FOUND;
END
$$;

COMMENT ON FUNCTION pgsimhash.unmark(text, text, text) IS
    'Removes the mark of two URLs; returns whether there was one.';

-- Internal functions, which may change with any release.

CREATE FUNCTION pgsimhash._put_mark(collection text, a text, b text, same boolean) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
    against record;
BEGIN
    PERFORM pgsimhash.unmark(collection, a, b);
    IF same THEN
        SELECT m.url_a, m.url_b INTO against
        FROM pgsimhash._marked_same(collection, a) AS x (url)
        CROSS JOIN pgsimhash._marked_same(collection, b) AS y (url)
        JOIN pgsimhash.marks AS m
            ON m.collection_id = wanted AND NOT m.same
            AND m.url_a = least(x.url COLLATE "C", y.url COLLATE "C")
            AND m.url_b = greatest(x.url COLLATE "C", y.url COLLATE "C")
        LIMIT 1;
    ELSE
        SELECT a AS url_a, b AS url_b INTO against
        FROM pgsimhash._marked_same(collection, a) AS x (url)
        WHERE x.url = b;
    END IF;
    IF against.url_a IS NOT NULL THEN
        RAISE EXCEPTION 'other marks say that % and % are %',
            against.url_a, against.url_b, CASE WHEN same THEN 'different' ELSE 'the same' END
            USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Remove one of them first: pgsimhash mark --remove; pgsimhash mark lists them.';
    END IF;
    INSERT INTO pgsimhash.marks (collection_id, url_a, url_b, same)
    VALUES (
        wanted, least(a COLLATE "C", b COLLATE "C"), greatest(a COLLATE "C", b COLLATE "C"), same
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._put_mark(text, text, text, boolean) IS
    'Writes a mark, or replaces it, unless it contradicts other marks.';

CREATE FUNCTION pgsimhash._marked_same(collection text, url text) RETURNS SETOF text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE joined (url) AS (
        SELECT _marked_same.url
        UNION
        SELECT CASE m.url_a WHEN j.url THEN m.url_b ELSE m.url_a END
        FROM joined AS j
        JOIN pgsimhash.marks AS m ON m.same AND (m.url_a = j.url OR m.url_b = j.url)
        JOIN pgsimhash.collections AS c USING (collection_id)
        WHERE c.name = _marked_same.collection
    )
    SELECT j.url FROM joined AS j;
END
$$;

COMMENT ON FUNCTION pgsimhash._marked_same(text, text) IS
    'A URL, and all URLs that marks join to it, directly or indirectly.';

CREATE FUNCTION pgsimhash._marks_of(own_id integer, about text)
RETURNS TABLE (mark_id bigint, url text, same boolean)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT m.mark_id, m.url_b, m.same
    FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id AND m.url_a = about
    UNION ALL
    SELECT m.mark_id, m.url_a, m.same
    FROM pgsimhash.marks AS m
    WHERE m.collection_id = own_id AND m.url_b = about;
END
$$;

COMMENT ON FUNCTION pgsimhash._marks_of(integer, text) IS
    'The marks of a URL, with the other URLs.';

-- Policies override settings of the collection for some hosts.

-- Settings that are NULL keep their values.
CREATE FUNCTION pgsimhash.set_policy(
    collection text, pattern text, distance integer DEFAULT NULL, verify boolean DEFAULT NULL,
    scope text DEFAULT NULL, window_size integer DEFAULT NULL, max_age interval DEFAULT NULL,
    canonical_link boolean DEFAULT NULL, max_copies integer DEFAULT NULL,
    min_tokens integer DEFAULT NULL, expire_after interval DEFAULT NULL
) RETURNS pgsimhash.policies
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
DECLARE
    made pgsimhash.policies;
BEGIN
    PERFORM pgsimhash._hold_collection(set_policy.collection);
    INSERT INTO pgsimhash.policies AS p (
        collection_id, host, path, distance, verify, scope, window_size, max_age, canonical_link,
        max_copies, min_tokens, expire_after
    )
    SELECT
        c.collection_id, parts.host, parts.path,
        pgsimhash._policy_distance(c.collection_id, set_policy.distance), set_policy.verify,
        set_policy.scope, set_policy.window_size, set_policy.max_age, set_policy.canonical_link,
        set_policy.max_copies, set_policy.min_tokens, set_policy.expire_after
    FROM pgsimhash.collections AS c
    CROSS JOIN pgsimhash._pattern_parts(set_policy.pattern) AS parts
    WHERE c.name = set_policy.collection
    ON CONFLICT ON CONSTRAINT policies_pattern_key DO UPDATE SET
        distance = coalesce(excluded.distance, p.distance),
        verify = coalesce(excluded.verify, p.verify),
        scope = coalesce(excluded.scope, p.scope),
        window_size = coalesce(excluded.window_size, p.window_size),
        max_age = coalesce(excluded.max_age, p.max_age),
        canonical_link = coalesce(excluded.canonical_link, p.canonical_link),
        max_copies = coalesce(excluded.max_copies, p.max_copies),
        min_tokens = coalesce(excluded.min_tokens, p.min_tokens),
        expire_after = coalesce(excluded.expire_after, p.expire_after),
        set_at = excluded.set_at
    RETURNING p.* INTO made;
    RETURN made;
END
$$;

COMMENT ON FUNCTION pgsimhash.set_policy(
    text, text, integer, boolean, text, integer, interval, boolean, integer, integer, interval
) IS 'Sets the policy of the pages that match a pattern; omitted settings keep their values.';

CREATE FUNCTION pgsimhash.remove_policy(collection text, pattern text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._hold_collection(remove_policy.collection);
BEGIN
    DELETE FROM pgsimhash.policies AS p
    USING pgsimhash._pattern_parts(remove_policy.pattern) AS parts
    WHERE p.collection_id = wanted AND p.host = parts.host AND p.path = parts.path;
    RETURN FOUND;
END
$$;

COMMENT ON FUNCTION pgsimhash.remove_policy(text, text) IS
    'Removes the policy of a pattern; returns whether there was one.';

CREATE FUNCTION pgsimhash.policy_for(collection text, url text) RETURNS TABLE (
    distance smallint, verify boolean, scope text, window_size integer, max_age interval,
    canonical_link boolean, max_copies integer, min_tokens integer, expire_after interval
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        s.distance, s.verify, s.scope, s.window_size, s.max_age, s.canonical_link, s.max_copies,
        s.min_tokens, s.expire_after
    FROM (SELECT pgsimhash._id_of(policy_for.collection)) AS asked (own_id)
    LEFT JOIN LATERAL
        pgsimhash._settings_for(asked.own_id, ARRAY[policy_for.url]) AS s ON true;
END
$$;

COMMENT ON FUNCTION pgsimhash.policy_for(text, text) IS
    'The settings that policies define for a URL; NULL if the collection''s own apply.';

-- Internal functions, which may change with any release.

-- A policy matches a URL if its host is the URL's host, a parent domain of it or *, and its path,
-- in which * matches anything, matches the rest of the URL from the first slash on. The first
-- matching policy that defines a setting decides it: longer hosts first, then longer paths, and *
-- last. URLs that match the same policies share a row, and those without a policy have none. The
-- hash join is forced because a thousand URLs and a thousand policies are a million pairs.
CREATE FUNCTION pgsimhash._settings_for(own_id integer, urls text[]) RETURNS TABLE (
    url_numbers integer[], distance smallint, verify boolean, scope text, window_size integer,
    max_age interval, canonical_link boolean, max_copies integer, min_tokens integer,
    expire_after interval
)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 4
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_nestloop = off
    SET enable_hashjoin = on
    SET enable_sort = on
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT
            u.url_number::integer AS url_number,
            coalesce(pgsimhash.host_of(u.url), '') AS host,
            coalesce(substring(u.url FROM '^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(.*)$'), '') AS path
        FROM unnest(urls) WITH ORDINALITY AS u (url, url_number)
    ),
    hosts AS MATERIALIZED (
        SELECT h.host, array_to_string(h.labels[label:], '.') AS policy_host
        FROM (
            SELECT DISTINCT a.host, string_to_array(a.host, '.') AS labels FROM asked AS a
        ) AS h
        CROSS JOIN LATERAL generate_subscripts(h.labels, 1) AS label
        UNION ALL
        SELECT DISTINCT a.host, '*' FROM asked AS a
    ),
    ranked AS MATERIALIZED (
        SELECT
            p.policy_id, p.host, p.path,
            replace(replace(replace(replace(
                p.path, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%') AS alike,
            row_number() OVER (
                ORDER BY
                    p.host = '*', length(p.host) DESC, p.path = '*', length(p.path) DESC,
                    p.path COLLATE "C"
            ) AS rank
        FROM pgsimhash.policies AS p
        WHERE p.collection_id = own_id
            AND p.host = ANY (ARRAY(SELECT DISTINCT h.policy_host FROM hosts AS h))
    ),
    fitting AS (
        SELECT a.url_number, array_agg(r.policy_id ORDER BY r.rank) AS policy_ids
        FROM asked AS a
        JOIN hosts AS h USING (host)
        JOIN ranked AS r ON r.host = h.policy_host
        WHERE r.path = '*'
            OR CASE WHEN a.path LIKE '/%' THEN a.path ELSE '/' || a.path END LIKE r.alike
        GROUP BY a.url_number
    ),
    alike AS (
        SELECT f.policy_ids, array_agg(f.url_number) AS url_numbers
        FROM fitting AS f
        GROUP BY f.policy_ids
    )
    SELECT
        a.url_numbers,
        (array_agg(p.distance ORDER BY o.place) FILTER (WHERE p.distance IS NOT NULL))[1],
        (array_agg(p.verify ORDER BY o.place) FILTER (WHERE p.verify IS NOT NULL))[1],
        (array_agg(p.scope ORDER BY o.place) FILTER (WHERE p.scope IS NOT NULL))[1],
        (array_agg(p.window_size ORDER BY o.place) FILTER (WHERE p.window_size IS NOT NULL))[1],
        (array_agg(p.max_age ORDER BY o.place) FILTER (WHERE p.max_age IS NOT NULL))[1],
        (array_agg(p.canonical_link ORDER BY o.place) FILTER (WHERE p.canonical_link IS NOT NULL))[1],
        (array_agg(p.max_copies ORDER BY o.place) FILTER (WHERE p.max_copies IS NOT NULL))[1],
        (array_agg(p.min_tokens ORDER BY o.place) FILTER (WHERE p.min_tokens IS NOT NULL))[1],
        (array_agg(p.expire_after ORDER BY o.place) FILTER (WHERE p.expire_after IS NOT NULL))[1]
    FROM alike AS a
    CROSS JOIN LATERAL unnest(a.policy_ids) WITH ORDINALITY AS o (policy_id, place)
    JOIN pgsimhash.policies AS p ON p.collection_id = own_id AND p.policy_id = o.policy_id
    GROUP BY a.url_numbers;
END
$$;

COMMENT ON FUNCTION pgsimhash._settings_for(integer, text[]) IS
    'The settings that policies define for URLs, by the indexes of the URLs.';

-- The host and the path of a pattern such as example.com/shop/*.
CREATE FUNCTION pgsimhash._pattern_parts(pattern text, OUT host text, OUT path text)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    host := lower(split_part(pattern, '/', 1) COLLATE "C");
    path := coalesce(nullif(substring(pattern FROM length(host) + 1), ''), '*');
    IF (host ~ '^[^/?#@:\s*]+$' OR host = '*') AND path !~ '\s' AND length(path) <= 500 THEN
        RETURN;
    END IF;
    RAISE EXCEPTION '"%" is not a pattern of a policy', coalesce(pattern, 'NULL')
        USING ERRCODE = 'invalid_parameter_value',
        HINT = 'Give a host or * for all, without https://, and optionally a path: '
            'example.com/shop/*.';
END
$$;

COMMENT ON FUNCTION pgsimhash._pattern_parts(text) IS
    'The host and the path of a pattern.';

-- The distance of a policy, checked against the layouts of its collection.
CREATE FUNCTION pgsimhash._policy_distance(own_id integer, distance integer) RETURNS integer
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    small record;
BEGIN
    SELECT l.name, l.largest_distance INTO small
    FROM pgsimhash.collections AS c
    JOIN pgsimhash.layouts AS l ON l.name = c.layout
    WHERE c.collection_id = own_id
        AND l.largest_distance < distance
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the policy has distance %, and layout "%" supports up to %',
            distance, small.name, small.largest_distance
            USING ERRCODE = 'check_violation',
            HINT = 'Give a smaller distance, or another layout: collection rebuild --layout.';
    END IF;
    RETURN distance;
END
$$;

COMMENT ON FUNCTION pgsimhash._policy_distance(integer, integer) IS
    'The distance of a policy; an error if the layout does not support it.';

-- Deletion of pages, and of simhashes without pages.

-- A procedure that commits cannot set search_path, so all names and operators in it are qualified.
CREATE PROCEDURE pgsimhash.expire(
    collection text, older_than interval DEFAULT NULL, batch integer DEFAULT 1000
)
    LANGUAGE plpgsql
    AS $$
DECLARE
    last_page bigint := 0;
BEGIN
    WHILE last_page IS NOT NULL LOOP
        last_page := (pgsimhash._expire_batch(collection, older_than, last_page, batch)).last_page;
        COMMIT;
    END LOOP;
END
$$;

COMMENT ON PROCEDURE pgsimhash.expire(text, interval, integer) IS
    'Deletes versions not seen for an age, or as policies define, in transactions of batch pages.';

-- The pages are searched under the lock, to include those added during the wait.
CREATE FUNCTION pgsimhash.delete_url(collection text, url text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._lock_collection(collection, true);
BEGIN
    RETURN (pgsimhash._delete_pages(collection, ARRAY(
        SELECT p.page_id
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = wanted AND p.url = delete_url.url
    ))).pages;
END
$$;

COMMENT ON FUNCTION pgsimhash.delete_url(text, text) IS
    'Deletes all versions of a page and their simhashes; returns the number of versions.';

CREATE FUNCTION pgsimhash.delete_host(collection text, host text) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._lock_collection(collection, true);
BEGIN
    RETURN (pgsimhash._delete_pages(collection, ARRAY(
        SELECT p.page_id
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = wanted AND p.host = lower(delete_host.host COLLATE "C")
    ))).pages;
END
$$;

COMMENT ON FUNCTION pgsimhash.delete_host(text, text) IS
    'Deletes all pages of a host like delete_url; returns the number of versions.';

CREATE FUNCTION pgsimhash.delete_simhashes(collection text, simhashes bigint[]) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._lock_collection(collection, true);
BEGIN
    RETURN pgsimhash._drop_simhashes(wanted, simhashes, true);
END
$$;

COMMENT ON FUNCTION pgsimhash.delete_simhashes(text, bigint[]) IS
    'Deletes those of the simhashes that no page of the collection has; returns how many.';

-- Internal functions, which may change with any release.

CREATE FUNCTION pgsimhash._drop_simhashes(own_id integer, simhashes bigint[], standalone boolean)
RETURNS bigint
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    suffix constant text := pgsimhash._suffix_of(own_id);
    dropped bigint;
BEGIN
    -- With CASE, because the planner might scan the table for the few that are not standalone.
    EXECUTE format(
        'DELETE FROM pgsimhash.%I AS s '
        'USING unnest($2) AS o (simhash) '
        'WHERE s.prefix_1 = pgsimhash.%I(o.simhash, 1, $1) AND s.simhash = o.simhash '
        'AND CASE WHEN s.standalone THEN $3 ELSE true END '
        'AND NOT EXISTS ('
        'SELECT FROM pgsimhash.pages AS p WHERE p.collection_id = $1 AND p.simhash = o.simhash)',
        'simhashes' || suffix, 'prefix' || suffix
    ) USING own_id, simhashes, standalone;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    RETURN dropped;
END
$$;

COMMENT ON FUNCTION pgsimhash._drop_simhashes(integer, bigint[], boolean) IS
    'Deletes those of the simhashes that no page of the collection has, optionally standalone ones '
    'too; returns how many.';

-- Pages are deleted under the collection's lock, so a writer decides before or after, not in
-- between. Loaders are locked out too: pages that they inserted may have these simhashes, and are
-- not visible yet. With seen_befores, one for each page, pages seen since then stay.
CREATE FUNCTION pgsimhash._delete_pages(
    collection text, page_ids bigint[], seen_befores timestamptz[] DEFAULT NULL,
    OUT pages bigint, OUT gone text[], OUT reverted text[], OUT promoted text[]
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    wanted constant integer := pgsimhash._lock_collection(collection, true);
    deleted constant bigint[] := ARRAY(
        SELECT p.page_id
        FROM unnest(page_ids, seen_befores) AS d (page_id, seen_before)
        JOIN pgsimhash.pages AS p ON p.collection_id = wanted AND p.page_id = d.page_id
        WHERE d.seen_before IS NULL
            OR p.fetched_at < d.seen_before AND NOT EXISTS (
                SELECT FROM pgsimhash.last_seen AS s
                WHERE s.collection_id = p.collection_id
                    AND s.page_id = p.page_id
                    AND s.seen_at >= d.seen_before
            )
    );
    urls text[];
    newest bigint[];
BEGIN
    SELECT array_agg(t.url), array_agg(t.newest) INTO urls, newest
    FROM (
        SELECT p.url, max(p.page_id) AS newest
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = wanted AND p.page_id = ANY (deleted)
        GROUP BY p.url
    ) AS t;
    promoted := pgsimhash._drop_pages(wanted, deleted);
    pages := cardinality(deleted);
    SELECT
        coalesce(array_agg(t.url ORDER BY t.newest) FILTER (WHERE r.page_id IS NULL), '{}'),
        coalesce(array_agg(t.url ORDER BY t.newest) FILTER (WHERE r.page_id < t.newest), '{}')
    INTO gone, reverted
    FROM unnest(urls, newest) AS t (url, newest)
    LEFT JOIN LATERAL (
        SELECT p.page_id
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = wanted AND p.url = t.url
        ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
        LIMIT 1
    ) AS r ON true;
END
$$;

COMMENT ON FUNCTION pgsimhash._delete_pages(text, bigint[], timestamptz[]) IS
    'Deletes pages and their simhashes, and promotes copies of them to originals; returns the '
    'number of pages, the deleted URLs, and those that reverted to an earlier version or were '
    'promoted.';

CREATE FUNCTION pgsimhash._drop_pages(own_id integer, page_ids bigint[]) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    dropped bigint[];
    runs bigint[];
    copy record;
BEGIN
    SELECT c.copy_ids, c.heads, c.originals INTO copy
    FROM pgsimhash._copies_of(own_id, page_ids) AS c;
    WITH deleted AS (
        DELETE FROM pgsimhash.pages AS p
        USING unnest(page_ids) AS d (page_id)
        WHERE p.collection_id = own_id AND p.page_id = d.page_id
        RETURNING p.simhash, p.run_id
    )
    SELECT array_agg(DISTINCT d.simhash), array_agg(DISTINCT d.run_id) INTO dropped, runs
    FROM deleted AS d;
    DELETE FROM pgsimhash.last_seen AS s
    WHERE s.collection_id = own_id AND s.page_id = ANY (page_ids);
    PERFORM
        pgsimhash._shrink_runs(own_id, runs, page_ids),
        pgsimhash._drop_simhashes(own_id, dropped, false);
    RETURN pgsimhash._promote_copies(own_id, copy.copy_ids, copy.heads, copy.originals);
END
$$;

COMMENT ON FUNCTION pgsimhash._drop_pages(integer, bigint[]) IS
    'Deletes pages by their ids, with the times when they were seen, their simhashes, and runs '
    'without pages; promotes a copy of each, and returns the URLs of these copies.';

-- A page may be a copy of a copy. The head of a copy is the last deleted page on the way to its
-- original.
CREATE FUNCTION pgsimhash._copies_of(
    own_id integer, page_ids bigint[], OUT copy_ids bigint[], OUT heads bigint[],
    OUT originals bigint[]
)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = on
    SET enable_mergejoin = off
    SET enable_sort = on
    SET jit = off
    AS $$
#variable_conflict use_column
BEGIN
    WITH RECURSIVE going AS MATERIALIZED (
        SELECT DISTINCT p.page_id, p.duplicate_of
        FROM unnest(page_ids) AS d (page_id)
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = d.page_id
    ),
    chain (page_id, head, original, goes) AS (
        SELECT g.page_id, g.page_id, g.duplicate_of, true
        FROM going AS g
        WHERE NOT EXISTS (SELECT FROM going AS o WHERE o.page_id = g.duplicate_of)
        UNION ALL
        SELECT p.page_id, c.head, c.original, g.page_id IS NOT NULL
        FROM chain AS c
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.duplicate_of = c.page_id
        LEFT JOIN going AS g ON g.page_id = p.page_id
        WHERE c.goes
    )
    SELECT
        array_agg(c.page_id ORDER BY c.page_id), array_agg(c.head ORDER BY c.page_id),
        array_agg(c.original ORDER BY c.page_id)
    INTO copy_ids, heads, originals
    FROM chain AS c
    WHERE NOT c.goes;
END
$$;

COMMENT ON FUNCTION pgsimhash._copies_of(integer, bigint[]) IS
    'The remaining copies of deleted pages; the head of each, and the original of the head.';

-- The copies of a head are decided again, by the rule and the policies of the collection. First
-- they are compared with its original, if that remains, and then with the earliest remaining copy,
-- which becomes an original. After a hundred rounds all remaining copies become originals, which
-- bounds the time under the lock.
CREATE FUNCTION pgsimhash._promote_copies(
    own_id integer, copy_ids bigint[], heads bigint[], originals bigint[]
) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = on
    SET enable_mergejoin = off
    SET enable_sort = on
    SET jit = off
    AS $$
DECLARE
    default_distance constant integer := (
        SELECT c.default_distance FROM pgsimhash.collections AS c WHERE c.collection_id = own_id
    );
    marked constant boolean := EXISTS (
        SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id
    );
    leaders bigint[] := originals;
    urls text[];
    promoted text[] := '{}';
    rounds integer := 0;
BEGIN
    WHILE cardinality(copy_ids) > 0 LOOP
        SELECT array_agg(p.url ORDER BY c.number) INTO urls
        FROM unnest(copy_ids) WITH ORDINALITY AS c (page_id, number)
        JOIN pgsimhash.pages AS p ON p.collection_id = own_id AND p.page_id = c.page_id;
        WITH moved AS (
            UPDATE pgsimhash.pages AS p
            SET duplicate_of = m.leader, distance = m.distance
            FROM (
                SELECT
                    c.page_id, l.page_id AS leader,
                    pgsimhash.hamming_distance(c.simhash, l.simhash) AS distance
                FROM unnest(copy_ids, leaders) WITH ORDINALITY AS u (page_id, leader, number)
                JOIN pgsimhash.pages AS c ON c.collection_id = own_id AND c.page_id = u.page_id
                JOIN pgsimhash.pages AS l ON l.collection_id = own_id AND l.page_id = u.leader
                LEFT JOIN (
                    SELECT n.number, s.*
                    FROM pgsimhash._settings_for(own_id, urls) AS s
                    CROSS JOIN LATERAL unnest(s.url_numbers) AS n (number)
                ) AS s ON s.number = u.number
                LEFT JOIN LATERAL pgsimhash._version_before(own_id, c.url, c.page_id) AS v ON true
                CROSS JOIN LATERAL (
                    SELECT
                        CASE WHEN s.scope = 'host' THEN c.host END AS only_host,
                        array_agg(m.url) FILTER (WHERE NOT m.same) AS apart,
                        coalesce(bool_or(m.same AND m.url = l.url), false) AS marked_same
                    FROM pgsimhash._marks_of(CASE WHEN marked THEN own_id END, c.url) AS m
                ) AS k
                WHERE u.page_id <> u.leader AND (
                    k.marked_same OR pgsimhash._counts(
                        pgsimhash.hamming_distance(c.simhash, l.simhash), l.page_id, l.url, l.host,
                        l.fetched_at, l.simhash, l.signature_high, l.signature_low,
                        l.distance IS NOT NULL,
                        (
                            SELECT d.url
                            FROM pgsimhash.pages AS d
                            WHERE d.collection_id = own_id AND d.page_id = l.duplicate_of
                        ),
                        c.url, k.only_host, c.fetched_at - s.max_age,
                        CASE WHEN s.window_size IS NOT NULL THEN pgsimhash._window(
                            CASE WHEN s.scope = 'global' THEN pgsimhash._siblings(own_id)
                                ELSE ARRAY[own_id] END,
                            k.only_host, s.window_size, c.page_id
                        ) END,
                        k.apart, v.simhash, v.first_page, coalesce(s.distance, default_distance),
                        CASE WHEN coalesce(s.verify, true) THEN c.signature_high END,
                        CASE WHEN coalesce(s.verify, true) THEN c.signature_low END
                    )
                )
            ) AS m
            WHERE p.collection_id = own_id AND p.page_id = m.page_id
            RETURNING p.page_id
        )
        SELECT array_agg(r.page_id), array_agg(r.head), array_agg(r.leader)
        INTO copy_ids, heads, leaders
        FROM (
            SELECT
                c.page_id, c.head,
                CASE WHEN rounds < 100 THEN min(c.page_id) OVER (PARTITION BY c.head)
                    ELSE c.page_id END AS leader
            FROM unnest(copy_ids, heads, leaders) AS c (page_id, head, leader)
            WHERE c.page_id IS DISTINCT FROM c.leader
                AND NOT EXISTS (SELECT FROM moved AS m WHERE m.page_id = c.page_id)
            ORDER BY c.page_id
        ) AS r;
        WITH leader AS (
            UPDATE pgsimhash.pages AS p
            SET duplicate_of = NULL, distance = NULL
            FROM (SELECT DISTINCT u.leader FROM unnest(leaders) AS u (leader)) AS n
            WHERE p.collection_id = own_id AND p.page_id = n.leader
            RETURNING p.page_id, p.url
        )
        SELECT promoted || coalesce(array_agg(l.url ORDER BY l.page_id), '{}') INTO promoted
        FROM leader AS l;
        rounds := rounds + 1;
    END LOOP;
    RETURN promoted;
END
$$;

COMMENT ON FUNCTION pgsimhash._promote_copies(integer, bigint[], bigint[], bigint[]) IS
    'Makes the earliest copy of deleted pages an original, and lets the others point to it; returns '
    'the URLs of the new originals.';

-- Runs without pages are deleted. The bounds of the others move to remaining pages, where the next
-- search begins.
CREATE FUNCTION pgsimhash._shrink_runs(own_id integer, run_ids bigint[], page_ids bigint[])
RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET jit = off
    AS $$
BEGIN
    UPDATE pgsimhash.runs AS r
    SET first_page = (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.run_id = r.run_id
                AND p.page_id BETWEEN r.first_page AND r.last_page
            ORDER BY p.collection_id, p.page_id
            LIMIT 1
        ),
        last_page = (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = own_id AND p.run_id = r.run_id
                AND p.page_id BETWEEN r.first_page AND r.last_page
            ORDER BY p.collection_id DESC, p.page_id DESC
            LIMIT 1
        )
    WHERE r.collection_id = own_id AND r.run_id = ANY (run_ids)
        AND (r.first_page = ANY (page_ids) OR r.last_page = ANY (page_ids));
    DELETE FROM pgsimhash.runs AS r
    WHERE r.collection_id = own_id AND r.run_id = ANY (run_ids) AND r.first_page IS NULL;
END
$$;

COMMENT ON FUNCTION pgsimhash._shrink_runs(integer, bigint[], bigint[]) IS
    'Removes deleted pages from runs, and deletes runs without pages.';

-- The pages are searched without a lock and locked one batch at a time. They are read in the order
-- of their ids; otherwise the planner would sort the rest of the table for each batch. Without an
-- age, policies define the age of each page, if any does.
CREATE FUNCTION pgsimhash._expire_batch(
    collection text, older_than interval, after_page bigint, batch integer,
    OUT last_page bigint, OUT pages bigint, OUT gone text[], OUT reverted text[],
    OUT promoted text[]
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET enable_sort = off
    SET jit = off
    AS $$
DECLARE
    wanted constant integer := (
        SELECT c.collection_id FROM pgsimhash.collections AS c WHERE c.name = collection
    );
    next_pages bigint[];
    urls text[];
    old bigint[];
    seen_befores timestamptz[];
BEGIN
    PERFORM pgsimhash._name_for(collection, 'simhashes');
    IF batch < 1 THEN
        RAISE EXCEPTION 'a batch must have at least one page, not %', batch
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a number such as 1000.';
    ELSIF older_than <= interval '0' THEN
        RAISE EXCEPTION 'the age of expired pages must be positive, not %', older_than
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give an age such as interval ''90 days''.';
    ELSIF older_than IS NULL AND NOT EXISTS (
        SELECT FROM pgsimhash.policies AS p
        WHERE p.collection_id = wanted AND p.expire_after IS NOT NULL
    ) THEN
        RAISE EXCEPTION 'no policy of collection "%" defines when pages expire', collection
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give an age (interval ''90 days'', --older-than 90d), or set a policy: '
                'pgsimhash policy set ''*'' --expire-after 90d.';
    END IF;
    IF older_than IS NULL THEN
        SELECT array_agg(o.page_id), array_agg(o.url), max(o.page_id)
        INTO next_pages, urls, last_page
        FROM (
            SELECT p.page_id, p.url
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = wanted AND p.page_id > after_page
            ORDER BY p.page_id
            LIMIT batch
        ) AS o;
        SELECT array_agg(p.page_id), array_agg(now() - s.expire_after)
        INTO old, seen_befores
        FROM pgsimhash._settings_for(wanted, urls) AS s
        CROSS JOIN LATERAL unnest(s.url_numbers) AS n (url_number)
        JOIN pgsimhash.pages AS p
            ON p.collection_id = wanted AND p.page_id = next_pages[n.url_number]
        WHERE p.fetched_at < now() - s.expire_after
            AND NOT EXISTS (
                SELECT FROM pgsimhash.last_seen AS g
                WHERE g.collection_id = p.collection_id
                    AND g.page_id = p.page_id
                    AND g.seen_at >= now() - s.expire_after
            );
    ELSE
        SELECT array_agg(o.page_id), array_agg(now() - older_than), max(o.page_id)
        INTO old, seen_befores, last_page
        FROM (
            SELECT p.page_id
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = wanted
                AND p.page_id > after_page
                AND p.fetched_at < now() - older_than
                AND NOT EXISTS (
                    SELECT FROM pgsimhash.last_seen AS s
                    WHERE s.collection_id = p.collection_id
                        AND s.page_id = p.page_id
                        AND s.seen_at >= now() - older_than
                )
            ORDER BY p.page_id
            LIMIT batch
        ) AS o;
    END IF;
    SELECT d.pages, d.gone, d.reverted, d.promoted INTO pages, gone, reverted, promoted
    FROM pgsimhash._delete_pages(collection, coalesce(old, '{}'), seen_befores) AS d;
    IF last_page IS NULL THEN
        -- Runs that added no page.
        DELETE FROM pgsimhash.runs AS r
        WHERE r.collection_id = wanted AND r.first_page IS NULL
            AND r.finished_at < now() - coalesce(older_than, (
                SELECT max(p.expire_after)
                FROM pgsimhash.policies AS p
                WHERE p.collection_id = wanted
            ));
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._expire_batch(text, interval, bigint, integer) IS
    'Deletes the next expired pages; last_page is where to continue, NULL at the end.';

-- The rule for originals, and the function that decides and stores by it.

-- Internal functions, which may change with any release.

-- The rule; tests/store/decide/test_rule.py has it as plain Python. A page near another one is an
-- eligible original if it is
--   1. in the compared collections (checked by the callers),
--   2. on the page's host, if the scope is the host,
--   3. not fetched longer before the page than max_age,
--   4. in the window, if there is one,
--   5. neither marked as different nor a duplicate of a page of its collection that is; pages at
--      the page's own URL are eligible anyway if that URL is only known in other collections,
--   6. not the page itself: if the page's collection knows its URL, neither at the URL nor a copy
--      that is later than its first version and equally near to the previous version,
--   7. confirmed by the signatures beyond the trusted distance, if both pages have one.
-- Not STRICT and without a search_path, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash._counts(
    distance integer, page_id bigint, url text, host text, fetched_at timestamptz, simhash bigint,
    signature_high bigint, signature_low bigint, is_copy boolean, duplicate_of_url text,
    own_url text, only_host text, since timestamptz, oldest bigint, apart text[],
    version_before bigint, first_page bigint, largest integer, own_high bigint, own_low bigint
) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN distance <= largest
        AND (only_host IS NULL OR host = only_host)
        AND (since IS NULL OR fetched_at >= since)
        AND (oldest IS NULL OR page_id >= oldest)
        AND (
            apart IS NULL
            OR url = own_url
            OR url <> ALL (apart) AND (duplicate_of_url = ANY (apart)) IS NOT TRUE
        )
        AND (
            version_before IS NULL
            OR url <> own_url AND (
                NOT is_copy
                OR page_id < first_page
                OR pgsimhash.hamming_distance(simhash, version_before) > largest
            )
        )
        AND pgsimhash._verified(distance, signature_high, signature_low, own_high, own_low);

COMMENT ON FUNCTION pgsimhash._counts(
    integer, bigint, text, text, timestamptz, bigint, bigint, bigint, boolean, text, text, text,
    timestamptz, bigint, text[], bigint, bigint, integer, bigint, bigint
) IS 'Whether a page is an eligible original of another one at this distance.';

-- The stored simhashes near those of a batch, each with its own distance; the compared collections,
-- and the newest page of each at that moment.
CREATE FUNCTION pgsimhash._near_pairs(
    own_id integer, simhashes bigint[], distances integer[], scopes text[],
    OUT compared integer[], OUT near_to bigint[], OUT near_simhashes bigint[],
    OUT newest_pages bigint[]
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    asked record;
    more record;
BEGIN
    compared := CASE
        WHEN 'global' = ANY (scopes) THEN pgsimhash._siblings(own_id)
        ELSE ARRAY[own_id]
    END;
    newest_pages := pgsimhash._newest_pages(compared);
    FOR asked IN
        SELECT u.distance, u.scope = 'global' AS everywhere, array_agg(DISTINCT u.simhash) AS queries
        FROM unnest(simhashes, distances, scopes) AS u (simhash, distance, scope)
        GROUP BY 1, 2
    LOOP
        SELECT array_agg(asked.queries[m.query_number]) AS queries, array_agg(m.simhash) AS simhashes
        INTO more
        FROM pgsimhash.collections AS c
        CROSS JOIN LATERAL pgsimhash.near_duplicates(asked.queries, asked.distance, c.name) AS m
        WHERE c.collection_id = own_id
            OR asked.everywhere AND c.collection_id = ANY (compared);
        near_to := near_to || more.queries;
        near_simhashes := near_simhashes || more.simhashes;
    END LOOP;
END
$$;

COMMENT ON FUNCTION pgsimhash._near_pairs(integer, bigint[], integer[], text[]) IS
    'The stored simhashes near those of a batch, and the newest page of each collection.';

CREATE FUNCTION pgsimhash._newest_pages(collection_ids integer[]) RETURNS bigint[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (
        SELECT array_agg(
            coalesce(
                (
                    SELECT max(p.page_id)
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                ),
                0
            )
            ORDER BY c.number
        )
        FROM unnest(collection_ids) WITH ORDINALITY AS c (collection_id, number)
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._newest_pages(integer[]) IS
    'The newest page of each collection, 0 if it has none.';

-- Page ids are assigned under the lock, so ids above the newest one are later. From here on nobody
-- else adds pages to the compared collections.
CREATE FUNCTION pgsimhash._lock_compared(
    collection text, own_id integer, compared integer[], INOUT newest_pages bigint[],
    OUT arrived bigint[]
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    AS $$
BEGIN
    PERFORM pgsimhash._lock_collections(compared);
    IF pgsimhash._writable_collection(collection) <> own_id THEN
        RAISE EXCEPTION 'collection "%" was replaced during the call', collection
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Try again.';
    END IF;
    arrived := ARRAY(
        SELECT DISTINCT a.simhash
        FROM unnest(compared, newest_pages) AS c (collection_id, newest_page)
        CROSS JOIN LATERAL (
            SELECT p.simhash
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = c.collection_id AND p.page_id > coalesce(c.newest_page, 0)
            OFFSET 0
        ) AS a
    );
    IF cardinality(arrived) > 0 THEN
        newest_pages := pgsimhash._newest_pages(compared);
    END IF;
END
$$;

COMMENT ON FUNCTION pgsimhash._lock_compared(text, integer, integer[], bigint[]) IS
    'Locks the compared collections; returns the newest pages, and the simhashes of pages that '
    'arrived since the given newest ones.';

-- Copies do not count: a hundred copies of one story displace no other.
CREATE FUNCTION pgsimhash._window(
    compared_ids integer[], of_host text, window_size integer, before_page bigint
) RETURNS bigint
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (
        SELECT coalesce(
            (
                SELECT n.page_id
                FROM unnest(compared_ids) AS c (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND p.host = of_host
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.page_id DESC
                    LIMIT window_size
                ) AS n
                ORDER BY n.page_id DESC
                OFFSET window_size - 1
                LIMIT 1
            ),
            (
                SELECT n.page_id
                FROM unnest(compared_ids) AS c (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.page_id
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = c.collection_id
                        AND of_host IS NULL
                        AND p.distance IS NULL
                        AND p.page_id < before_page
                    ORDER BY p.page_id DESC
                    LIMIT window_size
                ) AS n
                ORDER BY n.page_id DESC
                OFFSET window_size - 1
                LIMIT 1
            ),
            0
        )
    );
END
$$;

COMMENT ON FUNCTION pgsimhash._window(integer[], text, integer, bigint) IS
    'The oldest original in the window of a host, or of all hosts if it is NULL; 0 if there are '
    'fewer originals.';

CREATE FUNCTION pgsimhash._version_before(own_id integer, of_url text, before_page bigint)
RETURNS TABLE (page_id bigint, simhash bigint, text_digest bigint, first_page bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1
    SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        p.page_id, p.simhash, p.text_digest,
        (
            SELECT f.page_id
            FROM pgsimhash.pages AS f
            WHERE f.collection_id = own_id AND f.url = of_url
            ORDER BY f.collection_id, f.url, f.page_id
            LIMIT 1
        )
    FROM pgsimhash.pages AS p
    WHERE p.collection_id = own_id AND p.url = of_url AND p.page_id < before_page
    ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
    LIMIT 1;
END
$$;

COMMENT ON FUNCTION pgsimhash._version_before(integer, text, bigint) IS
    'The newest version of a URL before a page, and the id of the first version.';

-- Decides about a batch in order and stores it. Each page is compared with the pages stored before
-- the batch, and with those before it in the batch.
--
-- Near simhashes are looked up here, before the lock, or are given: near_to has the query of each
-- of near_simhashes, some of which may be deleted, in the compared collections and up to
-- newest_pages. Then batch_to and batch_simhashes are the near pairs within the batch.
--
-- Without remember nothing is locked or stored. With page_ids, pages are evaluated as if they had
-- arrived with these ids, nothing is locked, and each gets its own row.
--
-- Planned once, because planning takes longer than the lookup. BETWEEN requires an order that only
-- one index has: a plan made while the table is small must not use another index later.
CREATE FUNCTION pgsimhash._add_batch(
    collection text, own_id integer, remember boolean, by_policies boolean, run_ids bigint[],
    label text, page_ids bigint[],
    urls text[], simhashes bigint[], fetched_at timestamptz[], signatures_high bigint[],
    signatures_low bigint[], text_digests bigint[], html_digests bytea[], canonicals text[],
    distances integer[], verify boolean[], scopes text[], window_sizes integer[], since timestamptz[],
    max_copies integer[],
    compared integer[] DEFAULT NULL, near_to bigint[] DEFAULT NULL,
    near_simhashes bigint[] DEFAULT NULL,
    batch_to bigint[] DEFAULT NULL, batch_simhashes bigint[] DEFAULT NULL,
    newest_pages bigint[] DEFAULT NULL,
    titles text[] DEFAULT NULL, canonical_urls text[] DEFAULT NULL, languages text[] DEFAULT NULL,
    features integer[] DEFAULT NULL, tokens integer[] DEFAULT NULL,
    html_bytes integer[] DEFAULT NULL, structures bigint[] DEFAULT NULL,
    markdowns text[] DEFAULT NULL
) RETURNS TABLE (
    verdict text, reason text, distance integer, duplicate_of text, original_page_id bigint,
    keep boolean, page_id bigint, run_pages bigint, lookup_seconds double precision
)
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    SET jit = off
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET max_parallel_workers_per_gather = 0
    SET enable_nestloop = off
    AS $$
#variable_conflict use_column
DECLARE
    batch_size constant integer := cardinality(urls);
    drawn constant regclass := pg_get_serial_sequence('pgsimhash.pages', 'page_id');
    is_given constant boolean := page_ids IS NOT NULL;
    is_asked constant boolean := near_to IS NULL;
    started constant timestamptz := clock_timestamp();
    looked_up timestamptz;
    arrived bigint[] := '{}';
    -- What each page is compared by.
    hosts text[];
    marked boolean;
    -- The previous version of each page: in the store, or another page of the batch.
    before_numbers integer[];
    first_numbers integer[];
    version_ids bigint[];
    version_simhashes bigint[];
    version_digests bigint[];
    first_pages bigint[];
    -- The present version afterwards: the page itself, unless it is unchanged.
    present_ids bigint[];
    present_digests bigint[];
    is_stored boolean[];
    -- Its original.
    original_ids bigint[];
    original_urls text[];
    original_distances integer[];
    reasons text[];
    copies integer[];
    earlier integer;
    candidate record;
    counted_pages bigint;
BEGIN
    IF urls IS NULL
        OR NOT by_policies AND EXISTS (
            SELECT FROM pgsimhash.policies AS p WHERE p.collection_id = own_id
        )
    THEN
        RETURN;
    END IF;
    IF is_asked THEN
        SELECT n.compared, n.near_to, n.near_simhashes, n.newest_pages
        INTO compared, near_to, near_simhashes, newest_pages
        FROM pgsimhash._near_pairs(own_id, simhashes, distances, scopes) AS n;
        near_to := coalesce(near_to, '{}');
        near_simhashes := coalesce(near_simhashes, '{}');
        IF batch_size > 1 THEN
            SELECT array_agg(p.query), array_agg(p.simhash) INTO batch_to, batch_simhashes
            FROM (
                SELECT DISTINCT q.simhash, b.simhash
                FROM unnest(simhashes, distances) WITH ORDINALITY AS q (simhash, distance, number)
                JOIN unnest(simhashes) WITH ORDINALITY AS b (simhash, number) ON b.number < q.number
                WHERE pgsimhash.hamming_distance(q.simhash, b.simhash) <= q.distance
            ) AS p (query, simhash);
        END IF;
    END IF;
    batch_to := coalesce(batch_to, '{}');
    looked_up := clock_timestamp();
    IF remember AND NOT is_given THEN
        SELECT l.newest_pages, l.arrived INTO newest_pages, arrived
        FROM pgsimhash._lock_compared(collection, own_id, compared, newest_pages) AS l;
        page_ids := ARRAY(
            SELECT nextval(drawn) FROM generate_series(1, batch_size)
        );
        -- Citus commits pages on their node first. A coordinator that stops at that moment forgets
        -- which ids it drew.
        IF page_ids[1] <= ANY (newest_pages) THEN
            PERFORM nextval(drawn)
            FROM generate_series(
                page_ids[1],
                least((SELECT max(n) FROM unnest(newest_pages) AS n), page_ids[1] + 1000000)
            );
            page_ids := ARRAY(
                SELECT nextval(drawn) FROM generate_series(1, batch_size)
            );
        END IF;
        -- Citus starts the sequences of workers above 2 ^ 48.
        IF page_ids[1] > 281474976710656 THEN
            RAISE EXCEPTION 'this node is a worker of the Citus cluster'
                USING ERRCODE = 'feature_not_supported', HINT = 'Connect to the coordinator.';
        END IF;
    ELSIF NOT is_given THEN
        -- Above all page ids.
        page_ids := ARRAY(
            SELECT 9223372036854775807 - batch_size + g FROM generate_series(1, batch_size) AS g
        );
    END IF;
    IF cardinality(arrived) > 0 THEN
        SELECT near_to || array_agg(q.simhash), near_simhashes || array_agg(a.simhash)
        INTO near_to, near_simhashes
        FROM unnest(simhashes, distances) AS q (simhash, distance)
        CROSS JOIN unnest(arrived) AS a (simhash)
        WHERE pgsimhash.hamming_distance(q.simhash, a.simhash) <= q.distance;
    END IF;
    SELECT
        array_agg(u.before_number ORDER BY u.number),
        array_agg(u.first_number ORDER BY u.number),
        array_agg(v.page_id ORDER BY u.number),
        array_agg(v.simhash ORDER BY u.number),
        array_agg(v.text_digest ORDER BY u.number),
        array_agg(v.first_page ORDER BY u.number),
        array_agg(CASE WHEN u.scope = 'host' THEN pgsimhash.host_of(u.url) END ORDER BY u.number)
    INTO
        before_numbers, first_numbers, version_ids, version_simhashes, version_digests,
        first_pages, hosts
    FROM (
        SELECT
            b.url, b.scope, b.number,
            lag(b.number) OVER same_url AS before_number,
            first_value(b.number) OVER same_url AS first_number
        FROM unnest(urls, scopes) WITH ORDINALITY AS b (url, scope, number)
        WINDOW same_url AS (PARTITION BY b.url COLLATE "C" ORDER BY b.number)
    ) AS u
    -- Like _version_before, without a call for each page.
    LEFT JOIN LATERAL (
        SELECT
            p.page_id, p.simhash, p.text_digest,
            (
                SELECT f.page_id
                FROM pgsimhash.pages AS f
                WHERE f.collection_id = own_id AND f.url = u.url
                ORDER BY f.collection_id, f.url, f.page_id
                LIMIT 1
            ) AS first_page
        FROM pgsimhash.pages AS p
        WHERE p.collection_id = own_id AND p.url = u.url AND p.page_id < page_ids[1]
        ORDER BY p.collection_id DESC, p.url DESC, p.page_id DESC
        LIMIT 1
    ) AS v ON true;
    FOR number IN 1..batch_size LOOP
        earlier := before_numbers[number];
        IF earlier IS NOT NULL THEN
            version_ids[number] := present_ids[earlier];
            version_simhashes[number] := simhashes[earlier];
            version_digests[number] := present_digests[earlier];
            first_pages[number] := coalesce(first_pages[number], page_ids[first_numbers[number]]);
        END IF;
        -- Apparently the present version again.
        is_stored[number] := (
            version_simhashes[number] = simhashes[number]
            AND coalesce(version_digests[number] = text_digests[number], true)
        ) IS NOT TRUE;
        IF is_stored[number] THEN
            present_ids[number] := page_ids[number];
            present_digests[number] := text_digests[number];
        ELSE
            present_ids[number] := version_ids[number];
            present_digests[number] := version_digests[number];
        END IF;
    END LOOP;
    original_ids := array_fill(NULL::bigint, ARRAY[batch_size]);
    original_urls := array_fill(NULL::text, ARRAY[batch_size]);
    original_distances := array_fill(NULL::integer, ARRAY[batch_size]);
    reasons := array_fill(NULL::text, ARRAY[batch_size]);
    copies := array_fill(0, ARRAY[batch_size]);
    -- A page marked as same is the original at any distance, if it was stored before this one; of
    -- several the earliest. Otherwise the canonical page is.
    marked := EXISTS (SELECT FROM pgsimhash.marks AS m WHERE m.collection_id = own_id);
    IF marked OR cardinality(array_remove(canonicals, NULL)) > 0 THEN
        FOR candidate IN
            SELECT DISTINCT ON (q.number)
                q.number, n.reason, n.url,
                coalesce(present_ids[b.last_number], v.page_id) AS page_id,
                coalesce(simhashes[b.last_number], v.simhash) AS simhash
            FROM unnest(urls, canonicals, is_stored) WITH ORDINALITY
                AS q (url, canonical, is_stored, number)
            CROSS JOIN LATERAL (
                SELECT m.url, 'marked_same' AS reason
                FROM pgsimhash._marks_of(own_id, q.url) AS m
                WHERE m.same
                UNION ALL
                SELECT q.canonical, 'canonical_link'
                WHERE NOT EXISTS (
                    SELECT FROM pgsimhash._marks_of(own_id, q.url) AS m
                    WHERE NOT m.same AND m.url = q.canonical
                )
            ) AS n
            LEFT JOIN LATERAL (
                SELECT min(u.number) AS first_number, max(u.number) AS last_number
                FROM unnest(urls) WITH ORDINALITY AS u (url, number)
                WHERE u.url = n.url AND u.number < q.number
            ) AS b ON true
            LEFT JOIN LATERAL pgsimhash._version_before(own_id, n.url, page_ids[1]) AS v
                ON true
            WHERE q.is_stored
                AND coalesce(v.first_page, page_ids[b.first_number])
                    < coalesce(first_pages[q.number], 9223372036854775807)
            ORDER BY
                q.number, n.reason DESC, coalesce(v.first_page, page_ids[b.first_number]),
                n.url COLLATE "C"
        LOOP
            reasons[candidate.number] := candidate.reason;
            original_ids[candidate.number] := candidate.page_id;
            original_urls[candidate.number] := candidate.url;
            original_distances[candidate.number] := pgsimhash.hamming_distance(
                simhashes[candidate.number], candidate.simhash
            );
        END LOOP;
    END IF;
    -- Otherwise the original is the nearest eligible page, the earliest among equals, and after
    -- equally near pages a standalone simhash.
    IF cardinality(near_to) + cardinality(batch_to) > 0 THEN
        FOR candidate IN
            WITH near AS NOT MATERIALIZED (
                SELECT
                    n.query, n.simhash, pgsimhash.hamming_distance(n.query, n.simhash) AS distance
                FROM unnest(near_to, near_simhashes) AS n (query, simhash)
            ),
            page AS MATERIALIZED (
                SELECT
                    u.*, hosts[u.number] AS only_host,
                    CASE WHEN u.verify THEN u.own_high END AS signature_high,
                    CASE WHEN u.verify THEN u.own_low END AS signature_low,
                    version_simhashes[u.number] AS version_before,
                    first_pages[u.number] AS first_page,
                    CASE WHEN marked THEN (
                        SELECT array_agg(m.url)
                        FROM pgsimhash._marks_of(own_id, u.url) AS m
                        WHERE NOT m.same
                    ) END AS apart
                FROM unnest(
                    urls, simhashes, signatures_high, signatures_low, distances, verify, scopes, window_sizes,
                    since, max_copies, is_stored
                ) WITH ORDINALITY AS u (
                    url, simhash, own_high, own_low, largest, verify, scope, window_size, since,
                    max_copies, is_stored, number
                )
                WHERE u.is_stored
            ),
            oldest AS MATERIALIZED (
                SELECT
                    d.scope, d.window_size, d.only_host,
                    pgsimhash._window(
                        CASE WHEN d.scope = 'global' THEN compared ELSE ARRAY[own_id] END,
                        d.only_host, d.window_size, page_ids[1]
                    ) AS page_id
                FROM (SELECT DISTINCT p.scope, p.window_size, p.only_host FROM page AS p) AS d
                WHERE d.window_size IS NOT NULL
            ),
            question AS MATERIALIZED (
                SELECT p.*, o.page_id AS oldest
                FROM page AS p
                LEFT JOIN oldest AS o
                    ON o.scope = p.scope AND o.window_size = p.window_size
                    AND coalesce(o.only_host, '') = coalesce(p.only_host, '')
            ),
            -- The first page of the batch with each simhash, and the simhashes without a page.
            leader AS MATERIALIZED (
                SELECT p.simhash, min(p.number) AS number
                FROM page AS p
                GROUP BY p.simhash
            ),
            standalone AS MATERIALIZED (
                SELECT n.simhash, c.collection_id
                FROM (SELECT DISTINCT n.simhash FROM near AS n) AS n
                CROSS JOIN pgsimhash.collections AS c
                WHERE c.collection_id = ANY (compared)
                    AND (
                        SELECT true
                        FROM pgsimhash.pages AS p
                        WHERE p.collection_id = c.collection_id
                            AND p.simhash BETWEEN n.simhash AND n.simhash
                        ORDER BY p.simhash
                        LIMIT 1
                    ) IS NULL
                    -- A cache may contain deleted simhashes.
                    AND pgsimhash.has_near_duplicate(n.simhash, 0, c.name)
            )
            SELECT
                q.number, k.distance, k.page_id, k.url, k.html_digest, NULL::bigint AS batch_number,
                q.apart, k.collection_id = own_id AS is_own
            FROM (
                SELECT q.number, array_agg(n.simhash) AS simhashes, array_agg(n.distance) AS distances
                FROM near AS n
                JOIN question AS q ON q.simhash = n.query AND n.distance <= q.largest
                GROUP BY q.number
            ) AS g
            JOIN question AS q USING (number)
            -- Nearest first, until enough are eligible: there may be thousands.
            CROSS JOIN LATERAL (
                SELECT n.distance, p.*
                FROM (
                    SELECT DISTINCT u.distance, u.simhash
                    FROM unnest(g.simhashes, g.distances) AS u (simhash, distance)
                    ORDER BY u.distance, u.simhash
                    OFFSET 0
                ) AS n
                CROSS JOIN LATERAL unnest(
                    CASE WHEN q.scope = 'global' THEN compared ELSE ARRAY[own_id] END
                ) AS o (collection_id)
                CROSS JOIN LATERAL (
                    SELECT p.collection_id, p.page_id, p.url, p.html_digest
                    FROM pgsimhash.pages AS p
                    WHERE p.collection_id = o.collection_id
                        AND p.simhash BETWEEN n.simhash AND n.simhash
                        AND p.page_id < page_ids[1]
                        AND pgsimhash._counts(
                            n.distance, p.page_id, p.url, p.host, p.fetched_at, p.simhash,
                            p.signature_high, p.signature_low, p.distance IS NOT NULL,
                            (
                                SELECT d.url
                                FROM pgsimhash.pages AS d
                                WHERE d.collection_id = p.collection_id AND d.page_id = p.duplicate_of
                            ),
                            q.url, q.only_host, q.since, q.oldest, q.apart, q.version_before,
                            q.first_page, q.largest, q.signature_high, q.signature_low
                        )
                    ORDER BY p.simhash, p.page_id
                    LIMIT q.max_copies
                ) AS p
                ORDER BY n.distance
                FETCH FIRST (q.max_copies) ROWS WITH TIES
            ) AS k
            UNION ALL
            SELECT
                q.number, k.distance, page_ids[k.number], urls[k.number], html_digests[k.number],
                k.number, q.apart, true
            FROM (
                SELECT
                    q.number, array_agg(p.number) AS numbers,
                    array_agg(pgsimhash.hamming_distance(p.simhash, q.simhash)) AS distances
                FROM unnest(batch_to, batch_simhashes) AS b (query, simhash)
                JOIN page AS p ON p.simhash = b.simhash
                JOIN question AS q
                    ON q.simhash = b.query AND p.number < q.number
                    AND pgsimhash.hamming_distance(p.simhash, q.simhash) <= q.largest
                GROUP BY q.number
            ) AS g
            JOIN question AS q USING (number)
            CROSS JOIN LATERAL (
                SELECT n.number, n.distance
                FROM (
                    SELECT u.number, u.distance
                    FROM unnest(g.numbers, g.distances) AS u (number, distance)
                    ORDER BY u.distance, u.number
                    OFFSET 0
                ) AS n
                -- The loop decides which page it duplicates.
                WHERE pgsimhash._counts(
                    n.distance, page_ids[n.number], urls[n.number],
                    CASE WHEN q.only_host IS NOT NULL THEN pgsimhash.host_of(urls[n.number]) END,
                    coalesce(fetched_at[n.number], now()), simhashes[n.number],
                    signatures_high[n.number], signatures_low[n.number], false, NULL,
                    q.url, q.only_host, q.since, NULL, q.apart, q.version_before,
                    q.first_page, q.largest, q.signature_high, q.signature_low
                )
                ORDER BY n.distance, n.number
                LIMIT CASE
                    WHEN q.apart IS NULL AND q.version_before IS NULL THEN q.max_copies
                END
            ) AS k
            UNION ALL
            SELECT q.number, n.distance, NULL, NULL, NULL, NULL, NULL, false
            FROM (
                SELECT DISTINCT n.query, n.distance, simhash, l.collection_id
                FROM near AS n
                JOIN standalone AS l USING (simhash)
            ) AS n
            JOIN question AS q ON q.simhash = n.query AND n.distance <= q.largest
            LEFT JOIN leader AS f ON f.simhash = n.simhash
            WHERE (n.collection_id = own_id OR q.scope = 'global')
                AND q.only_host IS NULL AND q.since IS NULL AND q.oldest IS NULL
                AND q.apart IS NULL
                AND (n.collection_id = own_id AND f.number < q.number) IS NOT TRUE
            ORDER BY 1, 2, 3 NULLS LAST
        LOOP
            earlier := candidate.batch_number;
            CONTINUE WHEN copies[candidate.number] >= max_copies[candidate.number]
                -- Parts of 5 and 6 that depend on whether the earlier page of the batch is a copy.
                OR original_ids[earlier] IS NOT NULL
                    AND candidate.url <> urls[candidate.number]
                    AND original_urls[earlier] = ANY (candidate.apart)
                OR original_distances[earlier] IS NOT NULL
                    AND page_ids[earlier] > first_pages[candidate.number]
                    AND pgsimhash.hamming_distance(
                        simhashes[earlier], version_simhashes[candidate.number]
                    ) <= distances[candidate.number];
            copies[candidate.number] := copies[candidate.number] + 1;
            IF original_distances[candidate.number] IS NULL THEN
                original_ids[candidate.number] := CASE WHEN candidate.is_own THEN candidate.page_id END;
                original_urls[candidate.number] := candidate.url;
                original_distances[candidate.number] := candidate.distance;
                reasons[candidate.number] := CASE
                    WHEN candidate.distance > 0 THEN 'within_distance'
                    WHEN candidate.html_digest = html_digests[candidate.number] THEN 'same_bytes'
                    ELSE 'same_simhash'
                END;
            END IF;
        END LOOP;
    END IF;
    IF remember THEN
        -- Citus cannot plan an INSERT with unknown values.
        PERFORM set_config('plan_cache_mode', 'auto', true);
    END IF;
    IF remember AND (is_given OR true = ANY (is_stored)) THEN
        -- So the trigger does not add their simhashes again.
        PERFORM set_config('simhashes.noted', 'yes', true);
        INSERT INTO pgsimhash.pages (
            collection_id, page_id, url, simhash, fetched_at, run_id, title, canonical_url, language,
            features, tokens, html_bytes, html_digest, text_digest, structure, signature_high,
            signature_low, markdown, duplicate_of, distance
        )
        SELECT
            own_id, b.page_id, b.url, b.simhash, coalesce(b.fetched_at, now()), b.run_id, b.title,
            b.canonical_url, b.language, b.features, b.tokens, b.html_bytes, b.html_digest,
            b.text_digest, b.structure, b.signature_high, b.signature_low, b.markdown, b.duplicate_of,
            b.distance
        FROM unnest(
            page_ids, urls, simhashes, fetched_at, run_ids, titles, canonical_urls, languages,
            features, tokens, html_bytes, html_digests, text_digests, structures, signatures_high,
            signatures_low, markdowns, original_ids, original_distances, is_stored
        ) AS b (
            page_id, url, simhash, fetched_at, run_id, title, canonical_url, language, features,
            tokens, html_bytes, html_digest, text_digest, structure, signature_high, signature_low,
            markdown, duplicate_of, distance, is_stored
        )
        WHERE b.is_stored OR is_given;
        PERFORM pgsimhash._put_simhashes(own_id, ARRAY(
            SELECT b.simhash
            FROM unnest(simhashes, is_stored) AS b (simhash, is_stored)
            WHERE b.is_stored OR is_given
        ), false);
    END IF;
    IF remember AND NOT is_given THEN
        IF false = ANY (is_stored) THEN
            PERFORM pgsimhash._see_pages(own_id, array_agg(b.page_id), array_agg(b.fetched_at))
            FROM unnest(present_ids, fetched_at, is_stored) AS b (page_id, fetched_at, is_stored)
            WHERE NOT b.is_stored;
        END IF;
        -- Each batch writes the run's row, so a run removed by a rollback or an undo reappears with
        -- the next batch. A single page belongs to no run unless the caller started one.
        IF run_ids[1] IS NOT NULL THEN
            INSERT INTO pgsimhash.runs AS r (
                run_id, collection_id, label, pages, new, duplicates, updated, unchanged,
                first_page, last_page
            )
            SELECT
                run_ids[1], own_id, label, batch_size,
                count(*) FILTER (
                    WHERE b.is_stored AND b.distance IS NULL AND b.version_id IS NULL
                ),
                count(b.distance),
                count(*) FILTER (
                    WHERE b.is_stored AND b.distance IS NULL AND b.version_id IS NOT NULL
                ),
                count(*) FILTER (WHERE NOT b.is_stored),
                min(b.page_id) FILTER (WHERE b.is_stored),
                max(b.page_id) FILTER (WHERE b.is_stored)
            FROM unnest(present_ids, original_distances, version_ids, is_stored)
                AS b (page_id, distance, version_id, is_stored)
            ON CONFLICT (collection_id, run_id) DO UPDATE SET
                finished_at = excluded.finished_at,
                pages = r.pages + excluded.pages,
                new = r.new + excluded.new,
                duplicates = r.duplicates + excluded.duplicates,
                updated = r.updated + excluded.updated,
                unchanged = r.unchanged + excluded.unchanged,
                first_page = least(r.first_page, excluded.first_page),
                last_page = greatest(r.last_page, excluded.last_page)
            RETURNING r.pages INTO counted_pages;
        END IF;
    END IF;
    RETURN QUERY
    SELECT
        CASE
            WHEN NOT b.is_stored THEN 'unchanged'
            WHEN b.distance <= 3 THEN 'duplicate'
            WHEN b.distance > 3 THEN 'near'
            WHEN b.version_id IS NOT NULL THEN 'updated'
            ELSE 'new'
        END,
        CASE
            WHEN NOT b.is_stored THEN 'unchanged'
            WHEN b.reason IS NOT NULL THEN b.reason
            WHEN b.version_id IS NULL THEN 'first_seen'
            WHEN b.version_digest = b.text_digest THEN 'same_text'
            ELSE 'changed'
        END,
        CASE
            WHEN NOT b.is_stored THEN 0
            WHEN b.distance IS NULL AND b.version_id IS NOT NULL
                THEN pgsimhash.hamming_distance(b.simhash, b.version_simhash)
            ELSE b.distance
        END,
        b.original_url,
        -- The pages of a dry run have no ids.
        CASE
            WHEN NOT b.is_stored THEN (
                SELECT p.duplicate_of
                FROM pgsimhash.pages AS p
                WHERE p.collection_id = own_id AND p.page_id = b.page_id
            )
            WHEN remember OR is_given OR b.original_id < page_ids[1] THEN b.original_id
        END,
        CASE
            WHEN NOT b.is_stored THEN false
            WHEN b.distance IS NOT NULL THEN greatest(b.copies, 1) < b.max_copies
            ELSE (b.version_digest = b.text_digest) IS NOT TRUE
        END,
        CASE WHEN remember OR NOT b.is_stored THEN b.page_id END,
        counted_pages,
        extract(epoch FROM looked_up - started)::double precision
    FROM unnest(
        is_stored, original_distances, version_ids, reasons, version_digests, text_digests,
        simhashes, version_simhashes, original_urls, original_ids, copies, max_copies, present_ids
    ) WITH ORDINALITY AS b (
        is_stored, distance, version_id, reason, version_digest, text_digest, simhash,
        version_simhash, original_url, original_id, copies, max_copies, page_id, number
    )
    ORDER BY b.number;
END
$$;

COMMENT ON FUNCTION pgsimhash._add_batch(
    text, integer, boolean, boolean, bigint[], text, bigint[], text[], bigint[], timestamptz[],
    bigint[], bigint[], bigint[], bytea[], text[], integer[], boolean[], text[], integer[],
    timestamptz[], integer[], integer[], bigint[], bigint[], bigint[], bigint[], bigint[], text[],
    text[], text[], integer[], integer[], integer[], bigint[], text[]
) IS 'Decides about pages in their order, stores them, and returns a verdict for each.';

-- Adding pages with SQL.

-- Decides like the package about single pages with given simhashes.
CREATE FUNCTION pgsimhash.add_page(
    url text, simhash bigint, collection text DEFAULT 'default',
    fetched_at timestamptz DEFAULT NULL
) RETURNS pgsimhash.verdict
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    made pgsimhash.verdict;
BEGIN
    SELECT
        v.url, v.verdict, v.reason, v.distance, v.duplicate_of, v.keep, v.page_id,
        v.original_page_id
    INTO made
    FROM pgsimhash.add_pages(
        ARRAY[url], ARRAY[simhash], collection, ARRAY[fetched_at]
    ) AS v;
    RETURN made;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_page(text, bigint, text, timestamptz) IS
    'Decides whether a page is known, and stores it; returns the verdict.';

CREATE FUNCTION pgsimhash.add_pages(
    urls text[], simhashes bigint[], collection text DEFAULT 'default',
    fetched_at timestamptz[] DEFAULT NULL
) RETURNS SETOF pgsimhash.verdict
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    failures constant text[] := ARRAY(
        SELECT pgsimhash._failure_of(p.url, p.fetched_at)
        FROM unnest(urls, fetched_at) WITH ORDINALITY AS p (url, fetched_at, number)
        ORDER BY p.number
    );
    page record;
BEGIN
    IF num_nulls(urls, simhashes) > 0
        OR greatest(array_ndims(urls), array_ndims(simhashes), array_ndims(fetched_at)) > 1
        OR cardinality(urls) <> cardinality(simhashes)
        OR cardinality(urls) <> cardinality(fetched_at)
        OR array_position(simhashes, NULL) IS NOT NULL
        OR array_position(urls, NULL) IS NOT NULL
    THEN
        RAISE EXCEPTION 'each page needs a URL and a simhash'
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give two arrays of one length, without NULL.';
    END IF;
    SELECT
        array_agg(p.url ORDER BY p.number) AS urls,
        array_agg(p.simhash ORDER BY p.number) AS simhashes,
        array_agg(p.fetched_at ORDER BY p.number) AS fetched_at,
        array_agg(coalesce(s.distance, c.default_distance)::integer ORDER BY p.number) AS distances,
        array_agg(coalesce(s.scope, 'collection') ORDER BY p.number) AS scopes,
        array_agg(s.window_size ORDER BY p.number) AS window_sizes,
        array_agg(coalesce(p.fetched_at, now()) - s.max_age ORDER BY p.number) AS since,
        array_agg(coalesce(s.max_copies, 1) ORDER BY p.number) AS max_copies
    INTO page
    FROM unnest(urls, simhashes, fetched_at, failures) WITH ORDINALITY
        AS p (url, simhash, fetched_at, failure, number)
    JOIN pgsimhash.collections AS c ON c.collection_id = own_id
    LEFT JOIN (
        SELECT n.number, s.*
        FROM pgsimhash._settings_for(own_id, urls) AS s
        CROSS JOIN LATERAL unnest(s.url_numbers) AS n (number)
    ) AS s USING (number)
    WHERE p.failure IS NULL;
    RETURN QUERY
    SELECT
        p.url, coalesce(v.verdict, 'failed'), coalesce(v.reason, p.failure), v.distance,
        v.duplicate_of, coalesce(v.keep, false), v.page_id, v.original_page_id
    FROM (
        SELECT u.url, u.failure, u.number, count(*) FILTER (WHERE u.failure IS NULL) OVER numbered
            AS place
        FROM unnest(urls, failures) WITH ORDINALITY AS u (url, failure, number)
        WINDOW numbered AS (ORDER BY u.number)
    ) AS p
    LEFT JOIN pgsimhash._add_batch(
        collection, own_id, true, true,
        array_fill(
            CASE WHEN cardinality(urls) > 1
                THEN nextval(pg_get_serial_sequence('pgsimhash.runs', 'run_id')) END,
            ARRAY[coalesce(cardinality(page.urls), 0)]
        ), 'SQL', NULL, page.urls, page.simhashes, page.fetched_at, NULL, NULL, NULL, NULL, NULL,
        page.distances, NULL, page.scopes, page.window_sizes, page.since, page.max_copies
    ) WITH ORDINALITY AS v ON v.ordinality = p.place AND p.failure IS NULL
    ORDER BY p.number;
END
$$;

COMMENT ON FUNCTION pgsimhash.add_pages(text[], bigint[], text, timestamptz[]) IS
    'add_page for several pages in order, as one batch; several pages are a run.';

-- Internal functions, which may change with any release.

-- The same checks as check_url in pages/urls.py and check_time in pages/times.py. Clocks of other
-- machines may be ahead.
CREATE FUNCTION pgsimhash._failure_of(url text, fetched_at timestamptz) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    RETURN CASE
        WHEN octet_length(url) NOT BETWEEN 1 AND 2048
            OR url !~ '^(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ff][Ii][Ll][Ee]:)'
            OR url !~ '^[Ff]' AND pgsimhash.host_of(url) IS NULL
            OR url ~ ('[\u0001- \u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f'
                '\u205f-\u206f\u3000\ufeff\ufff9-\ufffb]')
            THEN 'invalid_url'
        WHEN fetched_at NOT BETWEEN '1970-01-01 00:00+00' AND now() + interval '1 day'
            THEN 'invalid_time'
    END;

COMMENT ON FUNCTION pgsimhash._failure_of(text, timestamptz) IS
    'Why a page cannot be added, NULL if it can.';

-- Adds the simhashes of inserted pages, whoever inserts them, so that lookups find them. Nobody
-- deletes their collection before the commit.
CREATE FUNCTION pgsimhash._put_inserted() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    own record;
    name text;
BEGIN
    FOR own IN
        SELECT i.collection_id, array_agg(i.simhash) AS simhashes
        FROM inserted AS i
        GROUP BY i.collection_id
        ORDER BY i.collection_id
    LOOP
        IF NOT pgsimhash._is_locked(own.collection_id) THEN
            SELECT c.name INTO name
            FROM pgsimhash.collections AS c
            WHERE c.collection_id = own.collection_id;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'there is no collection with id %', own.collection_id
                    USING ERRCODE = 'foreign_key_violation',
                    HINT = 'Use an id from pgsimhash.collections.';
            END IF;
            PERFORM pgsimhash._hold_collection(name);
            -- Other writers were active when the ids were assigned, so these may be below theirs.
            PERFORM pgsimhash._advance_epoch(own.collection_id);
        END IF;
        PERFORM pgsimhash._put_simhashes(own.collection_id, own.simhashes, false);
    END LOOP;
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION pgsimhash._put_inserted() IS
    'Adds the simhashes of inserted pages to the tables that lookups use.';

DO $$
BEGIN
    IF NOT pgsimhash._is_distributed() THEN
        CREATE TRIGGER put_simhashes
            AFTER INSERT ON pgsimhash.pages
            REFERENCING NEW TABLE AS inserted
            FOR EACH STATEMENT
            WHEN (current_setting('simhashes.noted', true) IS DISTINCT FROM 'yes')
            EXECUTE FUNCTION pgsimhash._put_inserted();
    END IF;
END
$$;

-- The invariants of the rows of a collection, and the repair of violations. Tables, indexes and
-- functions are not checked here: see docs/maintain.md.

CREATE TYPE pgsimhash.violation AS (
    reason text,
    page_id bigint,
    url text,
    simhash bigint,
    repair text
);

COMMENT ON TYPE pgsimhash.violation IS
    'A row that contradicts the others, and how a repair changes it.';

-- One slice of the pages by their ids and of the simhashes by their prefixes, in one snapshot.
-- Index lookups are forced, so that a slice takes a bounded time. Only a repair takes the
-- collection's lock.
CREATE FUNCTION pgsimhash.check_collection(
    collection text, repair boolean DEFAULT false, slice integer DEFAULT 0, slices integer DEFAULT 1
) RETURNS SETOF pgsimhash.violation
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET jit = off
    AS $$
DECLARE
    own_id constant integer := pgsimhash._id_of(collection);
    suffix constant text := pgsimhash._suffix_of(own_id);
    first_page bigint;
    last_page bigint;
    violations pgsimhash.violation[];
BEGIN
    IF slices < 1 OR slice NOT BETWEEN 0 AND slices - 1 THEN
        RAISE EXCEPTION 'there is no slice % of %', slice, slices
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Slices are counted from 0.';
    END IF;
    IF repair THEN
        PERFORM pgsimhash._lock_collections(ARRAY[own_id], true);
    ELSE
        PERFORM pgsimhash._check_row_security();
    END IF;
    SELECT
        div((slices - slice) * o.lowest::numeric + slice * (o.highest + 1::numeric), slices),
        div((slices - slice - 1) * o.lowest::numeric + (slice + 1) * (o.highest + 1::numeric), slices)
            - 1
    INTO first_page, last_page
    FROM (
        SELECT min(p.page_id) AS lowest, max(p.page_id) AS highest
        FROM (
            SELECT p.page_id FROM pgsimhash.pages AS p WHERE p.collection_id = own_id
            UNION ALL
            SELECT s.page_id FROM pgsimhash.last_seen AS s WHERE s.collection_id = own_id
        ) AS p
    ) AS o;
    EXECUTE format(
        $query$
        SELECT array_agg(v::pgsimhash.violation ORDER BY v.reason, v.page_id, v.simhash)
        FROM (
            -- A lookup misses the page.
            SELECT 'simhash_missing' AS reason, p.page_id, p.url, p.simhash,
                'its simhash is added to %1$s' AS repair
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = $1 AND p.page_id BETWEEN $2 AND $3
                AND NOT EXISTS (
                    SELECT FROM pgsimhash.%1$I AS s
                    WHERE s.prefix_1 = pgsimhash.%2$I(p.simhash, 1, $1) AND s.simhash = p.simhash
                )
            UNION ALL
            -- A lookup returns a simhash of no page.
            SELECT 'simhash_unused', NULL, NULL, s.simhash, 'the simhash is removed from %1$s'
            FROM pgsimhash.layouts AS l
            JOIN pgsimhash.%1$I AS s
                ON s.prefix_1 >= ($1::bigint << 40) + (($4::bigint << l.prefix_bits) / $5)
                AND s.prefix_1 < ($1::bigint << 40) + ((($4 + 1)::bigint << l.prefix_bits) / $5)
            WHERE l.suffix = $6 AND NOT s.standalone
                AND NOT EXISTS (
                    SELECT FROM pgsimhash.pages AS p
                    WHERE p.collection_id = $1 AND p.simhash = s.simhash
                )
            UNION ALL
            SELECT 'original_missing', p.page_id, p.url, p.simhash, 'its earliest copy takes its place'
            FROM pgsimhash.pages AS p
            WHERE p.collection_id = $1 AND p.page_id BETWEEN $2 AND $3
                AND p.duplicate_of IS NOT NULL
                AND NOT EXISTS (
                    SELECT FROM pgsimhash.pages AS o
                    WHERE o.collection_id = $1
                        AND o.page_id = p.duplicate_of
                        AND o.page_id < p.page_id
                )
            UNION ALL
            SELECT 'distance_wrong', p.page_id, p.url, p.simhash, 'the distance is computed again'
            FROM pgsimhash.pages AS p
            JOIN pgsimhash.pages AS o
                ON o.collection_id = p.collection_id AND o.page_id = p.duplicate_of
            WHERE p.collection_id = $1 AND p.page_id BETWEEN $2 AND $3
                AND o.page_id < p.page_id
                AND p.distance::integer
                    IS DISTINCT FROM pgsimhash.hamming_distance(p.simhash, o.simhash)
            UNION ALL
            SELECT 'seen_orphaned', s.page_id, NULL, NULL, 'the row of last_seen is removed'
            FROM pgsimhash.last_seen AS s
            WHERE s.collection_id = $1 AND s.page_id BETWEEN $2 AND $3
                AND NOT EXISTS (
                    SELECT FROM pgsimhash.pages AS p
                    WHERE p.collection_id = $1 AND p.page_id = s.page_id
                )
        ) AS v
        $query$,
        'simhashes' || suffix, 'prefix' || suffix
    ) INTO violations USING own_id, first_page, last_page, slice, slices, suffix;
    IF repair AND violations IS NOT NULL THEN
        PERFORM
            pgsimhash._put_simhashes(
                own_id, array_agg(v.simhash) FILTER (WHERE v.reason = 'simhash_missing'), false
            ),
            pgsimhash._drop_simhashes(
                own_id, array_agg(v.simhash) FILTER (WHERE v.reason = 'simhash_unused'), false
            ),
            pgsimhash._advance_epoch(own_id)
        FROM unnest(violations) AS v;
        -- Together with the other copies of the same page, which may be in another slice.
        PERFORM pgsimhash._promote_copies(
            own_id, array_agg(p.page_id), array_agg(p.duplicate_of),
            array_fill(NULL::bigint, ARRAY[count(*)::integer])
        )
        FROM (
            SELECT DISTINCT c.page_id, c.duplicate_of
            FROM unnest(violations) AS v
            JOIN pgsimhash.pages AS a ON a.collection_id = own_id AND a.page_id = v.page_id
            JOIN pgsimhash.pages AS c
                ON c.collection_id = own_id AND c.duplicate_of = a.duplicate_of
            WHERE v.reason = 'original_missing'
                AND NOT EXISTS (
                    SELECT FROM pgsimhash.pages AS o
                    WHERE o.collection_id = own_id
                        AND o.page_id = c.duplicate_of
                        AND o.page_id < c.page_id
                )
        ) AS p;
        UPDATE pgsimhash.pages AS p
        SET distance = pgsimhash.hamming_distance(p.simhash, o.simhash)
        FROM unnest(violations) AS v, pgsimhash.pages AS o
        WHERE v.reason = 'distance_wrong'
            AND p.collection_id = own_id AND p.page_id = v.page_id
            AND o.collection_id = own_id AND o.page_id = p.duplicate_of;
        DELETE FROM pgsimhash.last_seen AS s
        USING unnest(violations) AS v
        WHERE v.reason = 'seen_orphaned'
            AND s.collection_id = own_id AND s.page_id = v.page_id;
    END IF;
    RETURN QUERY SELECT * FROM unnest(violations);
END
$$;

COMMENT ON FUNCTION pgsimhash.check_collection(text, boolean, integer, integer) IS
    'The rows of a collection that contradict each other, optionally repaired; in slices for large '
    'collections.';

-- Roles with minimal rights.

CREATE FUNCTION pgsimhash.create_roles(prefix text DEFAULT NULL) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    here constant oid := (
        SELECT relnamespace FROM pg_class WHERE oid = 'pgsimhash.pages'::regclass
    );
    place constant text := here::regnamespace::text;
    -- Roles belong to the server, so each database needs different names.
    owner constant text := coalesce(
        prefix,
        (SELECT format('%s_%s', current_database(), nspname) FROM pg_namespace WHERE oid = here)
    ) || '_owner';
    writer constant text := left(owner, -length('owner')) || 'writer';
    reader constant text := left(owner, -length('owner')) || 'reader';
    step text;
BEGIN
    IF octet_length(writer) > 63 THEN
        RAISE EXCEPTION 'a role cannot be called "%"', writer
            USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Give a prefix of up to 56 bytes.';
    END IF;
    FOR step IN
        SELECT format('CREATE ROLE %I NOLOGIN', r.role)
        FROM unnest(ARRAY[owner, writer, reader]) AS r (role)
        WHERE to_regrole(quote_ident(r.role)) IS NULL
    LOOP
        EXECUTE step;
    END LOOP;
    FOR step IN
        -- To transfer ownership, a role must be a member of the new owner. Later revisions are deployed
        -- by this role too, and only trust owners that are granted to it.
        SELECT format('GRANT %I TO %I', owner, current_user)
        WHERE current_user <> owner
        UNION ALL
        SELECT format('GRANT %I TO %I', reader, writer)
        UNION ALL
        SELECT format('ALTER SCHEMA %s OWNER TO %I', place, owner)
        UNION ALL
        SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, owner)
        FROM pg_class WHERE relnamespace = here AND relkind IN ('r', 'p')
        UNION ALL
        SELECT format('ALTER TYPE %s OWNER TO %I', oid::regtype, owner)
        FROM pg_type
        WHERE typnamespace = here
            AND (
                typtype IN ('e', 'd')
                OR typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c')
            )
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO %I', oid::regprocedure, owner)
        FROM pg_proc WHERE pronamespace = here
        UNION ALL
        SELECT format(p.privileges, place, writer, reader, owner)
        FROM unnest(ARRAY[
            'GRANT USAGE ON SCHEMA %1$s TO %3$I',
            'GRANT SELECT ON ALL TABLES IN SCHEMA %1$s TO %3$I',
            'GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %1$s TO %2$I',
            'GRANT USAGE ON ALL SEQUENCES IN SCHEMA %1$s TO %2$I',
            -- For the tables of later layouts.
            'ALTER DEFAULT PRIVILEGES FOR ROLE %4$I IN SCHEMA %1$s GRANT SELECT ON TABLES TO %3$I',
            'ALTER DEFAULT PRIVILEGES FOR ROLE %4$I IN SCHEMA %1$s '
                'GRANT INSERT, UPDATE, DELETE ON TABLES TO %2$I',
            'ALTER DEFAULT PRIVILEGES FOR ROLE %4$I IN SCHEMA %1$s '
                'GRANT USAGE ON SEQUENCES TO %2$I'
        ]) AS p (privileges)
        UNION ALL
        -- Only the owner may change these.
        SELECT format('REVOKE INSERT, UPDATE, DELETE ON %s FROM %I', oid::regclass, writer)
        FROM pg_class WHERE relnamespace = here AND relname IN ('layouts', 'alembic_version')
    LOOP
        EXECUTE step;
    END LOOP;
    RETURN ARRAY[owner, writer, reader];
END
$$;

COMMENT ON FUNCTION pgsimhash.create_roles(text) IS
    'Creates the roles <prefix>_owner, _writer and _reader, by default with the names of the '
    'database and the schema as the prefix. The owner role gets the schema, and the others their rights on '
    'present and later tables.';
