-- The layouts whose tables are deployed; indexed becomes true once all their indexes are built.
CREATE TABLE pgsimhash.layouts (
    name text PRIMARY KEY,
    suffix text NOT NULL CONSTRAINT layouts_suffix_key UNIQUE,
    indexed boolean NOT NULL,
    largest_distance smallint NOT NULL,
    prefix_bits smallint NOT NULL
);

COMMENT ON TABLE pgsimhash.layouts IS
    'The block layouts that are deployed: each has its table simhashes<suffix> and functions.';

-- While a collection changes its layout, next_layout is the one it changes to.
CREATE TABLE pgsimhash.collections (
    collection_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY
        CONSTRAINT collections_id_fits CHECK (collection_id BETWEEN 1 AND ${collection_max}),
    name text NOT NULL CONSTRAINT collections_name_key UNIQUE
        CONSTRAINT collections_name_given CHECK (name <> ''),
    scheme text NOT NULL,
    layout text NOT NULL DEFAULT '${layout.name}' REFERENCES pgsimhash.layouts,
    next_layout text REFERENCES pgsimhash.layouts,
    default_distance smallint NOT NULL DEFAULT ${near_max}
        CONSTRAINT collections_distance_fits CHECK (default_distance BETWEEN 0 AND ${distance_max}),
    keep_markdown boolean NOT NULL DEFAULT false,
    policies_version bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE pgsimhash.collections IS
    'A set of pages compared with one another: one scheme, one layout.';
