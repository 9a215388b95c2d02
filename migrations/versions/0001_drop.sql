DROP FUNCTION pgsimhash.check_collection(text, boolean, integer, integer);

DROP FUNCTION pgsimhash.lock_collection(text);

DROP FUNCTION pgsimhash.create_roles(text);

DROP FUNCTION pgsimhash.add_page(text, bigint, text, timestamptz);

DROP FUNCTION pgsimhash.add_pages(text[], bigint[], text, timestamptz[]);

DROP FUNCTION pgsimhash._failure_of(text, timestamptz);

DROP FUNCTION pgsimhash._add_batch(
    text, integer, boolean, boolean, bigint[], text, bigint[], text[], bigint[], timestamptz[],
    bigint[], bigint[], bigint[], bytea[], text[], integer[], boolean[], text[], integer[],
    timestamptz[], integer[], integer[], bigint[], bigint[], bigint[], bigint[], bigint[], text[],
    text[], text[], integer[], integer[], integer[], bigint[], text[]
);

DROP FUNCTION pgsimhash._version_before(integer, text, bigint);

DROP FUNCTION pgsimhash._lock_compared(text, integer, integer[], bigint[]);

DROP FUNCTION pgsimhash._near_pairs(integer, bigint[], integer[], text[]);

DROP FUNCTION pgsimhash._newest_pages(integer[]);

DROP FUNCTION pgsimhash._counts(
    integer, bigint, text, text, timestamptz, bigint, bigint, bigint, boolean, text, text, text,
    timestamptz, bigint, text[], bigint, bigint, integer, bigint, bigint
);

DROP FUNCTION pgsimhash._window(integer[], text, integer, bigint);

DROP PROCEDURE pgsimhash.expire(text, interval, integer);

DROP FUNCTION pgsimhash._expire_batch(text, interval, bigint, integer);

DROP FUNCTION pgsimhash.mark(text, text, text, boolean);

DROP FUNCTION pgsimhash._put_mark(text, text, text, boolean);

DROP FUNCTION pgsimhash.unmark(text, text, text);

DROP FUNCTION pgsimhash._marks_of(integer, text);

DROP FUNCTION pgsimhash._marked_same(text, text);

DROP FUNCTION pgsimhash._delete_pages(text, bigint[], timestamptz[]);

DROP FUNCTION pgsimhash._drop_pages(integer, bigint[]);

DROP FUNCTION pgsimhash._copies_of(integer, bigint[]);

DROP FUNCTION pgsimhash._promote_copies(integer, bigint[], bigint[], bigint[]);

DROP FUNCTION pgsimhash._shrink_runs(integer, bigint[], bigint[]);

DROP FUNCTION pgsimhash.remove_policy(text, text);

DROP FUNCTION pgsimhash.set_policy(
    text, text, integer, boolean, text, integer, interval, boolean, integer, integer, interval
);

DROP FUNCTION pgsimhash._pattern_parts(text);

DROP FUNCTION pgsimhash._policy_distance(integer, integer);

DROP FUNCTION pgsimhash.policy_for(text, text);

DROP FUNCTION pgsimhash._settings_for(integer, text[]);

DROP FUNCTION pgsimhash.rename_collection(text, text, boolean);

DROP FUNCTION pgsimhash.count_simhashes(text);

DROP FUNCTION pgsimhash._bytes_on_disk(text[], bigint);

DROP FUNCTION pgsimhash._simhash_slice(text, integer, integer);

DROP FUNCTION pgsimhash.delete_simhashes(text, bigint[]);

DROP FUNCTION pgsimhash.delete_host(text, text);

DROP FUNCTION pgsimhash.delete_url(text, text);

DROP FUNCTION pgsimhash._drop_simhashes(integer, bigint[], boolean);

DROP FUNCTION pgsimhash._see_pages(integer, bigint[], timestamptz[]);

DROP FUNCTION pgsimhash._copy_pages(integer, integer, bigint[], boolean);

DROP FUNCTION pgsimhash._note_inserted();

DROP FUNCTION pgsimhash._advance_epoch(integer);

DROP FUNCTION pgsimhash._put_simhashes(integer, bigint[], boolean);

DROP FUNCTION pgsimhash._is_distributed();

DROP FUNCTION pgsimhash.add_simhashes(text, bigint[]);

DROP FUNCTION pgsimhash._suffix_of(integer);

DROP FUNCTION pgsimhash.near_pages(text, integer, text);

DROP FUNCTION pgsimhash.near_pages(bigint, integer, text);

DROP FUNCTION pgsimhash._near_pages(text, bigint, bigint, bigint, integer, text, bigint);

DROP FUNCTION pgsimhash._siblings(integer);

DROP FUNCTION pgsimhash._writable_collection(text);

DROP FUNCTION pgsimhash._hold_collection(text);

DROP FUNCTION pgsimhash._lock_collection(text, boolean);

DROP FUNCTION pgsimhash._is_locked(integer);

DROP FUNCTION pgsimhash._lock_collections(integer[], boolean);

DROP FUNCTION pgsimhash._lock_rows(integer[], integer);

DROP FUNCTION pgsimhash._check_row_security();

DROP FUNCTION pgsimhash._check_isolation();

DROP FUNCTION pgsimhash._check_lookup(integer, text, boolean);

DROP FUNCTION pgsimhash._name_for(text, text);

DROP FUNCTION pgsimhash._collection_to_write(text, text, text, text, text);
DROP FUNCTION pgsimhash._id_of(text);

DROP FUNCTION pgsimhash._verified(integer, bigint, bigint, bigint, bigint);

DROP FUNCTION pgsimhash.signature_distance(bigint, bigint, bigint, bigint);

DROP FUNCTION pgsimhash.simhash(bigint[], double precision[]);

DROP FUNCTION pgsimhash.from_base32(text);

DROP FUNCTION pgsimhash.to_base32(bigint);

DROP FUNCTION pgsimhash.level_distance(text);

DROP FUNCTION pgsimhash.similarity(bigint, bigint);

DROP FUNCTION pgsimhash._masks(integer, integer);

DROP FUNCTION pgsimhash.hamming_distance(bigint, bigint);

DROP FUNCTION pgsimhash.bit_count(bigint);

DROP TABLE pgsimhash.cache_epochs;

DROP TABLE pgsimhash.policies;

DROP TABLE pgsimhash.marks;

DROP TABLE pgsimhash.rebuilds;

DROP TABLE pgsimhash.sources;

DROP TABLE pgsimhash.runs;

DROP TABLE pgsimhash.last_seen;

DROP TABLE pgsimhash.pages;

DROP FUNCTION pgsimhash._put_inserted();

DROP FUNCTION pgsimhash.host_of(text);

DROP TABLE pgsimhash.collections;

DROP TABLE pgsimhash.layouts;

DROP TYPE pgsimhash.violation;

DROP TYPE pgsimhash.verdict;

DROP TYPE pgsimhash.near_page;

DROP TYPE pgsimhash.numbered_match;

DROP TYPE pgsimhash.match;
