CREATE TABLE pgsimhash.collections (
    collection_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY
        CONSTRAINT collections_id_fits CHECK (collection_id BETWEEN 1 AND ${collection_max}),
    name text NOT NULL CONSTRAINT collections_name_key UNIQUE
        CONSTRAINT collections_name_given CHECK (name <> ''),
    scheme text NOT NULL,
    layout text NOT NULL DEFAULT '${layout.name}'
        CONSTRAINT collections_layout_built CHECK (layout = '${layout.name}'),
    default_distance smallint NOT NULL DEFAULT ${layout.distances[-1]}
        CONSTRAINT collections_distance_answered
        CHECK (default_distance BETWEEN 0 AND ${layout.distances[-1]}),
    created_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE pgsimhash.collections IS
    'A set of pages compared with one another: one scheme, one layout.';
