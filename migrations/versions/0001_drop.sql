DROP FUNCTION pgsimhash._known_pages(integer, bigint, text[]);

DROP FUNCTION pgsimhash._nearest(
    integer, integer[], bigint, bigint[], bigint[], bigint[], text[], timestamptz[], bigint[],
    integer[], text[], integer, integer, integer
);

DROP PROCEDURE pgsimhash.expire(text, interval, integer);

DROP FUNCTION pgsimhash._expire_batch(text, interval, bigint, integer);

DROP FUNCTION pgsimhash._copy_marks(text, text);

DROP FUNCTION pgsimhash.mark(text, text, text, boolean);

DROP FUNCTION pgsimhash._put_mark(text, text, text, boolean, timestamptz);

DROP FUNCTION pgsimhash.unmark(text, text, text);

DROP FUNCTION pgsimhash._marks_of(integer, text);

DROP FUNCTION pgsimhash._marked_same(text, text);

DROP FUNCTION pgsimhash._forget_pages(text, bigint[], timestamptz[]);

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

DROP FUNCTION pgsimhash._simhash_slice(text, integer, integer);

DROP FUNCTION pgsimhash.forget_simhashes(text, bigint[], boolean);

DROP FUNCTION pgsimhash._add_simhashes_of_pages(text, bigint[]);

DROP FUNCTION pgsimhash.add_simhashes(text, bigint[]);

DROP FUNCTION pgsimhash._lock_collections(integer[]);

DROP FUNCTION pgsimhash._check_isolation();

DROP FUNCTION pgsimhash._check_lookup(integer, text, boolean);

DROP FUNCTION pgsimhash._name_for(text, text);

DROP FUNCTION pgsimhash.sketch_distance(bigint, bigint, bigint, bigint);

DROP FUNCTION pgsimhash.from_base32(text);

DROP FUNCTION pgsimhash.to_base32(bigint);

DROP FUNCTION pgsimhash.level_distance(text);

DROP FUNCTION pgsimhash.similarity(bigint, bigint);

DROP FUNCTION pgsimhash._masks(integer, integer);

DROP FUNCTION pgsimhash.hamming_distance(bigint, bigint);

DROP FUNCTION pgsimhash.bit_count(bigint);

DROP TABLE pgsimhash.policies;

DROP TABLE pgsimhash.marks;

DROP TABLE pgsimhash.tasks;

DROP TABLE pgsimhash.runs;

DROP TABLE pgsimhash.sightings;

DROP TABLE pgsimhash.pages;

DROP FUNCTION pgsimhash.host_of(text);

DROP TABLE pgsimhash.collections;

DROP TABLE pgsimhash.layouts;

DROP FUNCTION pgsimhash._simhashes_inserted();

DROP FUNCTION pgsimhash._simhashes_deleted();

DROP FUNCTION pgsimhash._simhashes_updated();

DROP TYPE pgsimhash.numbered_match;

DROP TYPE pgsimhash.match;
