-- Every table, in the order in which they are understood: collections, their simhashes with the
-- prefix columns that make lookups fast, the pages behind the simhashes, then what people and jobs
-- say about pages. Schema files are deployed in the order of pgsimhash.statements.SCHEMA_FILES.

-- Only the letters A to Z become lower: of others, and without "C" of these, the database's locale
-- decides.
CREATE FUNCTION pgsimhash.host_of(url text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        -- Of most URLs, in less than half the time.
        WHEN url ~ '^https?://[^]/?#@:[\\]+(/|$)' THEN lower(split_part(url, '/', 3) COLLATE "C")
        ELSE lower(substring(
            url FROM '^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\\]*@)?'
                '(\[[0-9A-Za-z:.%]+\]|[^][/?#:@\\]+)(?=[:/?#\\]|$)'
        ) COLLATE "C")
    END;

COMMENT ON FUNCTION pgsimhash.host_of(text) IS
    'The host of an absolute URL, its letters A to Z in lower case; NULL where it has none.';

CREATE TABLE pgsimhash.layouts (
    name text PRIMARY KEY,
    suffix text NOT NULL CONSTRAINT layouts_suffix_key UNIQUE,
    indexed boolean NOT NULL,
    largest_distance smallint NOT NULL,
    prefix_bits smallint NOT NULL
);

COMMENT ON TABLE pgsimhash.layouts IS
    'The block layouts that are deployed: each has its table simhashes<suffix> and functions.';

COMMENT ON COLUMN pgsimhash.layouts.name IS
    'The widths of the blocks, such as 22+21+21.';

COMMENT ON COLUMN pgsimhash.layouts.suffix IS
    'What the names of its table and functions end in, empty for the default layout.';

COMMENT ON COLUMN pgsimhash.layouts.indexed IS
    'Whether all of its indexes are built.';

COMMENT ON COLUMN pgsimhash.layouts.largest_distance IS
    'The largest distance, in bits, that its lookups answer.';

COMMENT ON COLUMN pgsimhash.layouts.prefix_bits IS
    'How many bits the prefix of its first permutation has.';

CREATE TABLE pgsimhash.collections (
    collection_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY
        CONSTRAINT collections_id_fits CHECK (collection_id BETWEEN 1 AND 8388607),
    name text NOT NULL CONSTRAINT collections_name_key UNIQUE
        CONSTRAINT collections_name_given CHECK (name <> ''),
    scheme text NOT NULL,
    layout text NOT NULL DEFAULT '22+21+21' REFERENCES pgsimhash.layouts,
    default_distance smallint NOT NULL DEFAULT 8
        CONSTRAINT collections_distance_fits CHECK (default_distance BETWEEN 0 AND 12),
    keep_markdown boolean NOT NULL DEFAULT false,
    normalize_urls boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE pgsimhash.collections IS
    'A set of pages compared with one another: one scheme, one layout.';

COMMENT ON COLUMN pgsimhash.collections.collection_id IS
    'Stands above the prefix in every prefix column, so that indexes are scoped to a collection.';

COMMENT ON COLUMN pgsimhash.collections.name IS
    'What it is called; it may change.';

COMMENT ON COLUMN pgsimhash.collections.scheme IS
    'The recipe from a page to its simhash; simhashes of two schemes do not compare.';

COMMENT ON COLUMN pgsimhash.collections.layout IS
    'The layout whose table holds its simhashes.';

COMMENT ON COLUMN pgsimhash.collections.default_distance IS
    'In how many bits two pages may differ and still be near-duplicates.';

COMMENT ON COLUMN pgsimhash.collections.keep_markdown IS
    'Whether pages keep their main content as Markdown.';

COMMENT ON COLUMN pgsimhash.collections.normalize_urls IS
    'Whether its URLs are brought into one spelling, by the package, when they come in.';

COMMENT ON COLUMN pgsimhash.collections.created_at IS
    'When it was created.';

-- One row per distinct simhash of a collection, however many pages share it. The server fills the
-- prefix columns, so that rows inserted by plain SQL are right too. A prefix column holds the
-- collection's number (shifted by 40) above the block of the simhash that comes first in that
-- permutation: 22, 21 and 21 bits. With the simhash behind the prefix, the Hamming check runs on the
-- index alone. Where bare stands it takes no space: the simhash begins at a multiple of eight bytes.
--
-- This is the default layout; layout.sql renders the same for others, and its indexes, functions and
-- triggers.
CREATE TABLE pgsimhash.simhashes (
    collection_id integer NOT NULL,
    bare boolean NOT NULL DEFAULT true,
    simhash bigint NOT NULL,
    prefix_1 bigint NOT NULL GENERATED ALWAYS AS (
        (collection_id::bigint << 40) | ((simhash >> 42) & 4194303)
    ) STORED,
    prefix_2 bigint NOT NULL GENERATED ALWAYS AS (
        (collection_id::bigint << 40) | ((simhash >> 21) & 2097151)
    ) STORED,
    prefix_3 bigint NOT NULL GENERATED ALWAYS AS (
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
    'The distinct simhashes of each collection, with one prefix column per permutation '
    '(layout 22+21+21).';

COMMENT ON COLUMN pgsimhash.simhashes.collection_id IS
    'The collection whose simhash it is.';

COMMENT ON COLUMN pgsimhash.simhashes.bare IS
    'Whether it was added by itself, so that it stays when the pages go that share it.';

COMMENT ON COLUMN pgsimhash.simhashes.simhash IS
    'The 64 bits, as a signed number.';

COMMENT ON COLUMN pgsimhash.simhashes.prefix_1 IS
    'The collection''s number, and bits 63 to 42 of the simhash.';

COMMENT ON COLUMN pgsimhash.simhashes.prefix_2 IS
    'The collection''s number, and bits 41 to 21 of the simhash.';

COMMENT ON COLUMN pgsimhash.simhashes.prefix_3 IS
    'The collection''s number, and bits 20 to 0 of the simhash.';

-- A page seen again with other content is a new row: the newest row of a URL is its present
-- version. There is no foreign key to simhashes: it would lock the row of a hot value for every page
-- sharing it. For that to collections the trigger put_simhashes stands, which asks once a statement.
CREATE TABLE pgsimhash.pages (
    page_id bigint GENERATED BY DEFAULT AS IDENTITY,
    collection_id integer NOT NULL,
    url text NOT NULL CONSTRAINT pages_url_length CHECK (octet_length(url) BETWEEN 1 AND 2048),
    host text GENERATED ALWAYS AS (pgsimhash.host_of(url)) STORED,
    simhash bigint NOT NULL,
    fetched_at timestamptz NOT NULL DEFAULT now()
        CONSTRAINT pages_fetched_at_fits
            CHECK (fetched_at BETWEEN '1970-01-01 00:00+00' AND '9999-12-30 00:00+00'),
    run_id bigint,
    title text,
    canonical_url text,
    language text,
    features integer,
    tokens integer,
    html_bytes integer,
    html_digest bytea,
    text_digest bigint,
    structure bigint,
    sketch_high bigint,
    sketch_low bigint,
    markdown text,
    duplicate_of bigint,
    distance smallint,
    CONSTRAINT pages_pkey PRIMARY KEY (collection_id, page_id)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);

CREATE INDEX pages_url_idx ON pgsimhash.pages (collection_id, url, page_id);

CREATE INDEX pages_simhash_idx ON pgsimhash.pages (collection_id, simhash, page_id);

-- With the duplicates of a host apart, so that its newest originals are found at once among however
-- many copies; pages_original_idx does the same for a collection.
CREATE INDEX pages_host_idx
    ON pgsimhash.pages (collection_id, host, (distance IS NULL), page_id);

CREATE INDEX pages_original_idx ON pgsimhash.pages (collection_id, page_id)
    WHERE distance IS NULL;

CREATE INDEX pages_duplicate_of_idx ON pgsimhash.pages (collection_id, duplicate_of)
    WHERE duplicate_of IS NOT NULL;

COMMENT ON TABLE pgsimhash.pages IS
    'Every version of every page, with its simhash and the page it duplicates.';

COMMENT ON COLUMN pgsimhash.pages.page_id IS
    'Its number: versions that came later have higher ones.';

COMMENT ON COLUMN pgsimhash.pages.collection_id IS
    'The collection that it is in.';

COMMENT ON COLUMN pgsimhash.pages.url IS
    'Where it was found, as it was given.';

COMMENT ON COLUMN pgsimhash.pages.host IS
    'The host of the URL in lower case.';

COMMENT ON COLUMN pgsimhash.pages.simhash IS
    'Its simhash by the collection''s scheme.';

COMMENT ON COLUMN pgsimhash.pages.fetched_at IS
    'When it was fetched.';

COMMENT ON COLUMN pgsimhash.pages.run_id IS
    'The run that added it.';

COMMENT ON COLUMN pgsimhash.pages.title IS
    'The text of its title element.';

COMMENT ON COLUMN pgsimhash.pages.canonical_url IS
    'What its rel=canonical says, absolute.';

COMMENT ON COLUMN pgsimhash.pages.language IS
    'What its lang attribute says.';

COMMENT ON COLUMN pgsimhash.pages.features IS
    'How many distinct features voted for the simhash.';

COMMENT ON COLUMN pgsimhash.pages.tokens IS
    'How many tokens its main content has.';

COMMENT ON COLUMN pgsimhash.pages.html_bytes IS
    'How many bytes it had as it came.';

COMMENT ON COLUMN pgsimhash.pages.html_digest IS
    'The first 16 bytes of the SHA-256 of the page as it came.';

COMMENT ON COLUMN pgsimhash.pages.text_digest IS
    'A hash of the words and numbers of its main content: it tells versions that say the same.';

COMMENT ON COLUMN pgsimhash.pages.structure IS
    'The simhash of the shape of its tree: alike for pages of one template.';

COMMENT ON COLUMN pgsimhash.pages.sketch_high IS
    'The upper 64 of the 128 bits of its sketch, to verify a match.';

COMMENT ON COLUMN pgsimhash.pages.sketch_low IS
    'The lower 64 bits of its sketch.';

COMMENT ON COLUMN pgsimhash.pages.markdown IS
    'Its main content, where the collection keeps that.';

COMMENT ON COLUMN pgsimhash.pages.duplicate_of IS
    'The page_id of the page that it was found to duplicate when it came in.';

COMMENT ON COLUMN pgsimhash.pages.distance IS
    'In how many bits it differs from that one; NULL for an original.';

-- Beside the pages and narrow, with room in each block for a second version of all its rows: seeing
-- a whole crawl again writes no index.
CREATE TABLE pgsimhash.last_seen (
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    page_id bigint NOT NULL,
    seen_at timestamptz NOT NULL
        CONSTRAINT last_seen_at_fits
            CHECK (seen_at BETWEEN '1970-01-01 00:00+00' AND '9999-12-30 00:00+00'),
    CONSTRAINT last_seen_pkey PRIMARY KEY (collection_id, page_id)
) WITH (fillfactor = 45);

COMMENT ON TABLE pgsimhash.last_seen IS
    'When versions were last met again unchanged; those that never were have no row.';

COMMENT ON COLUMN pgsimhash.last_seen.collection_id IS
    'The collection of the page.';

COMMENT ON COLUMN pgsimhash.last_seen.page_id IS
    'The version that was met again.';

COMMENT ON COLUMN pgsimhash.last_seen.seen_at IS
    'When, the last time.';

-- Each batch adds to the figures. The pages of a run have ids from first_page to last_page, among
-- those of other runs.
CREATE TABLE pgsimhash.runs (
    run_id bigint GENERATED BY DEFAULT AS IDENTITY,
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    what text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz NOT NULL DEFAULT now(),
    pages bigint NOT NULL DEFAULT 0,
    new bigint NOT NULL DEFAULT 0,
    duplicates bigint NOT NULL DEFAULT 0,
    updated bigint NOT NULL DEFAULT 0,
    unchanged bigint NOT NULL DEFAULT 0,
    first_page bigint,
    last_page bigint,
    CONSTRAINT runs_pkey PRIMARY KEY (collection_id, run_id)
);

COMMENT ON TABLE pgsimhash.runs IS
    'Every run that added pages, with what it did; finished_at is its last batch so far.';

COMMENT ON COLUMN pgsimhash.runs.run_id IS
    'Its number.';

COMMENT ON COLUMN pgsimhash.runs.collection_id IS
    'The collection that it added to.';

COMMENT ON COLUMN pgsimhash.runs.what IS
    'What it was, in words.';

COMMENT ON COLUMN pgsimhash.runs.started_at IS
    'When its first batch was written.';

COMMENT ON COLUMN pgsimhash.runs.finished_at IS
    'When its last batch was written.';

COMMENT ON COLUMN pgsimhash.runs.pages IS
    'How many pages it took.';

COMMENT ON COLUMN pgsimhash.runs.new IS
    'How many of them were new.';

COMMENT ON COLUMN pgsimhash.runs.duplicates IS
    'How many were duplicates.';

COMMENT ON COLUMN pgsimhash.runs.updated IS
    'How many were other versions of pages that were there already.';

COMMENT ON COLUMN pgsimhash.runs.unchanged IS
    'How many were there already.';

COMMENT ON COLUMN pgsimhash.runs.first_page IS
    'The first page_id that it added.';

COMMENT ON COLUMN pgsimhash.runs.last_page IS
    'The last one.';

-- A setting that is NULL is left to the next policy that fits: of the page's host, of the hosts it is
-- a subdomain of, of all hosts; for the same host the one with the longer path comes first. Ages are
-- such as can be taken off the present time, or else no writer could go on.
CREATE TABLE pgsimhash.policies (
    policy_id bigint GENERATED ALWAYS AS IDENTITY,
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    host text NOT NULL
        CONSTRAINT policies_host_given
            CHECK (host = '*' OR host = lower(host COLLATE "C") AND host ~ '^[^/?#@:\s*]+$'),
    path text NOT NULL DEFAULT '*'
        CONSTRAINT policies_path_fits CHECK (path = '*' OR path ~ '^/\S*$' AND length(path) <= 500),
    distance smallint CONSTRAINT policies_distance_fits CHECK (distance BETWEEN 0 AND 12),
    verify boolean,
    scope text CONSTRAINT policies_scope_known CHECK (scope IN ('host', 'collection', 'global')),
    newest integer CONSTRAINT policies_newest_positive CHECK (newest >= 1),
    max_age interval
        CONSTRAINT policies_max_age_fits
            CHECK (max_age > interval '0' AND max_age <= interval '1000 years'),
    canonical_link boolean,
    keep_first integer CONSTRAINT policies_keep_first_positive CHECK (keep_first >= 1),
    min_tokens integer CONSTRAINT policies_min_tokens_positive CHECK (min_tokens >= 1),
    expire_after interval
        CONSTRAINT policies_expire_after_fits
            CHECK (expire_after > interval '0' AND expire_after <= interval '1000 years'),
    set_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT policies_pkey PRIMARY KEY (collection_id, policy_id),
    CONSTRAINT policies_pattern_key UNIQUE (collection_id, host, path)
);

COMMENT ON TABLE pgsimhash.policies IS
    'PolicySettings for the pages of a host and its subdomains, * for all, and a path with * in it.';

COMMENT ON COLUMN pgsimhash.policies.policy_id IS
    'Its number.';

COMMENT ON COLUMN pgsimhash.policies.collection_id IS
    'The collection whose pages it is for.';

COMMENT ON COLUMN pgsimhash.policies.host IS
    'The host that it is for, with its subdomains; * is all.';

COMMENT ON COLUMN pgsimhash.policies.path IS
    'The path that it is for, in which * stands for anything.';

COMMENT ON COLUMN pgsimhash.policies.distance IS
    'In how many bits a page may differ from its original.';

COMMENT ON COLUMN pgsimhash.policies.verify IS
    'Whether sketches must agree too.';

COMMENT ON COLUMN pgsimhash.policies.scope IS
    'Among which pages originals are looked for.';

COMMENT ON COLUMN pgsimhash.policies.newest IS
    'How many of the newest originals a page is compared with, and what came since.';

COMMENT ON COLUMN pgsimhash.policies.max_age IS
    'How much older than the page an original may be.';

COMMENT ON COLUMN pgsimhash.policies.canonical_link IS
    'Whether a page duplicates the one that its rel=canonical names.';

COMMENT ON COLUMN pgsimhash.policies.keep_first IS
    'How many pages of a kind are worth keeping.';

COMMENT ON COLUMN pgsimhash.policies.min_tokens IS
    'A page of fewer words is not remembered.';

COMMENT ON COLUMN pgsimhash.policies.expire_after IS
    'After how long a version that was not seen again expires.';

COMMENT ON COLUMN pgsimhash.policies.set_at IS
    'When it was set last.';

-- By URL, so that a mark holds for versions to come and outlives the pages. Written by the functions of
-- marks.sql, which keep marks free of contradictions.
CREATE TABLE pgsimhash.marks (
    mark_id bigint GENERATED BY DEFAULT AS IDENTITY,
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    url_a text NOT NULL,
    url_b text NOT NULL,
    same boolean NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT marks_pkey PRIMARY KEY (collection_id, mark_id),
    CONSTRAINT marks_in_order CHECK (url_a COLLATE "C" < url_b COLLATE "C")
);

CREATE INDEX marks_url_a_idx ON pgsimhash.marks (collection_id, url_a);

CREATE INDEX marks_url_b_idx ON pgsimhash.marks (collection_id, url_b);

COMMENT ON TABLE pgsimhash.marks IS
    'Pairs of URLs that a person called the same or different, over what simhashes say.';

COMMENT ON COLUMN pgsimhash.marks.mark_id IS
    'Its number.';

COMMENT ON COLUMN pgsimhash.marks.collection_id IS
    'The collection that it is for.';

COMMENT ON COLUMN pgsimhash.marks.url_a IS
    'The URL that comes first in the order of its characters'' numbers.';

COMMENT ON COLUMN pgsimhash.marks.url_b IS
    'The other URL.';

COMMENT ON COLUMN pgsimhash.marks.same IS
    'Whether the pages are the same or different.';

COMMENT ON COLUMN pgsimhash.marks.marked_at IS
    'When a person said so.';

-- Moved on in the transaction that copies a batch, so that after an interruption it goes on with the
-- next one. While the row is there, what is deleted, seen again or added without a page in the
-- source is so in the collection too, and nobody else writes there.
CREATE TABLE pgsimhash.rebuilds (
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    source_id integer NOT NULL REFERENCES pgsimhash.collections,
    asked jsonb NOT NULL,
    last_page bigint NOT NULL DEFAULT 0,
    last_slice integer NOT NULL DEFAULT 0,
    slices integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT rebuilds_pkey PRIMARY KEY (collection_id)
);

COMMENT ON TABLE pgsimhash.rebuilds IS
    'Collections that are being made from others, with another layout, scheme or settings.';

COMMENT ON COLUMN pgsimhash.rebuilds.collection_id IS
    'The collection that is being made.';

COMMENT ON COLUMN pgsimhash.rebuilds.source_id IS
    'The collection that it is made from.';

COMMENT ON COLUMN pgsimhash.rebuilds.asked IS
    'What was asked for, so that only the same goes on.';

COMMENT ON COLUMN pgsimhash.rebuilds.last_page IS
    'The last page_id of the source that was taken.';

COMMENT ON COLUMN pgsimhash.rebuilds.last_slice IS
    'How many slices of simhashes without a page were taken.';

COMMENT ON COLUMN pgsimhash.rebuilds.slices IS
    'How many slices there are.';

COMMENT ON COLUMN pgsimhash.rebuilds.started_at IS
    'When it began.';

COMMENT ON COLUMN pgsimhash.rebuilds.updated_at IS
    'When its last batch was taken.';

-- What is known may be held in memory, by many at once, who go by the ids of pages to hear what is new.
-- What comes in another way adds a row here, so that none waits for another; the sum of all tells
-- whether there was any. The numbers are random: a sum that comes again means the same rows.
CREATE TABLE pgsimhash.loads (
    collection_id integer,
    mark bigint NOT NULL DEFAULT (random() * 1099511627776)::bigint
);

COMMENT ON TABLE pgsimhash.loads IS
    'What added simhashes in other ways than page by page under the lock of their collection.';

COMMENT ON COLUMN pgsimhash.loads.collection_id IS
    'Where to, NULL where that is not known.';

COMMENT ON COLUMN pgsimhash.loads.mark IS
    'A random number, or the sum of some.';

CREATE TYPE pgsimhash.match AS (
    simhash bigint,
    distance integer
);

COMMENT ON TYPE pgsimhash.match IS
    'A known simhash, and in how many bits it differs from the one asked for.';

CREATE TYPE pgsimhash.numbered_match AS (
    query_number bigint,
    simhash bigint,
    distance integer
);

COMMENT ON TYPE pgsimhash.numbered_match IS
    'The same where many are asked for: query_number counts them from 1.';

CREATE TYPE pgsimhash.near_page AS (
    url text,
    distance integer,
    simhash bigint,
    title text,
    fetched_at timestamptz,
    page_id bigint
);

COMMENT ON TYPE pgsimhash.near_page IS
    'The present version of a page, and in how many bits it differs from what was asked for.';

CREATE TYPE pgsimhash.verdict AS (
    url text,
    verdict text,
    reason text,
    distance integer,
    duplicate_of text,
    keep boolean,
    page_id bigint
);

COMMENT ON TYPE pgsimhash.verdict IS
    'What was decided about a page, and the number of its row.';
