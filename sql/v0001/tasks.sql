-- How far long work on a collection has come. Moved on in the transaction that does a batch of it,
-- so that after an interruption it goes on with the next one.
CREATE TABLE pgsimhash.tasks (
    collection_id integer NOT NULL REFERENCES pgsimhash.collections,
    what text NOT NULL,
    terms jsonb NOT NULL,
    last_page bigint NOT NULL DEFAULT 0,
    started_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT tasks_pkey PRIMARY KEY (collection_id, what)
);

COMMENT ON TABLE pgsimhash.tasks IS
    'How far long work on a collection has come, on what terms: the last page that is done.';
