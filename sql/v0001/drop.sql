DROP FUNCTION pgsimhash.known_pages(integer, bigint, text[]);

DROP FUNCTION pgsimhash.nearest(
    integer, integer[], bigint, bigint[], bigint[], bigint[], text[], timestamptz[], bigint[],
    integer[], text[], integer, integer, integer
);

DROP PROCEDURE pgsimhash.expire(text, interval, integer);

DROP FUNCTION pgsimhash.expire_batch(text, interval, bigint, integer);

DROP FUNCTION pgsimhash.copy_marks(text, text);

DROP FUNCTION pgsimhash.mark(text, text, text, boolean);

DROP FUNCTION pgsimhash.put_mark(text, text, text, boolean, timestamptz);

DROP FUNCTION pgsimhash.unmark(text, text, text);

DROP FUNCTION pgsimhash.marks_of(integer, text);

DROP FUNCTION pgsimhash.marked_same(text, text);

DROP FUNCTION pgsimhash.forget_pages(text, bigint[], timestamptz[]);

DROP FUNCTION pgsimhash.remove_policy(text, text);

DROP FUNCTION pgsimhash.set_policy(
    text, text, integer, boolean, text, integer, interval, boolean, integer, integer, interval
);

DROP FUNCTION pgsimhash.pattern_parts(text);

DROP FUNCTION pgsimhash.expire_after(integer, text);

DROP FUNCTION pgsimhash.policy_for(text, text);

DROP FUNCTION pgsimhash.policies_for(integer, text);

DROP FUNCTION pgsimhash.rename_collection(text, text, boolean);

DROP FUNCTION pgsimhash.count_simhashes(text);

DROP FUNCTION pgsimhash.simhash_slice(text, integer, integer);

DROP FUNCTION pgsimhash.forget_simhashes(text, bigint[], boolean);

DROP FUNCTION pgsimhash.add_simhashes_of_pages(text, bigint[]);

DROP FUNCTION pgsimhash.add_simhashes(text, bigint[]);

DROP FUNCTION pgsimhash.lock_collections(integer[]);

DROP FUNCTION pgsimhash.check_isolation();

DROP FUNCTION pgsimhash.check_lookup(integer, text, boolean);

DROP FUNCTION pgsimhash.name_for(text, text);

DROP FUNCTION pgsimhash.sketch_distance(bigint, bigint, bigint, bigint);

DROP FUNCTION pgsimhash.from_base32(text);

DROP FUNCTION pgsimhash.to_base32(bigint);

DROP FUNCTION pgsimhash.level_distance(text);

DROP FUNCTION pgsimhash.similarity(bigint, bigint);

DROP FUNCTION pgsimhash.masks(integer, integer);

DROP FUNCTION pgsimhash.hamming_distance(bigint, bigint);

DROP FUNCTION pgsimhash.bit_count(bigint);

DROP TABLE pgsimhash.policies;

DROP FUNCTION pgsimhash.policies_changed();

DROP FUNCTION pgsimhash.policy_checked();

DROP TABLE pgsimhash.marks;

DROP TABLE pgsimhash.tasks;

DROP TABLE pgsimhash.runs;

DROP TABLE pgsimhash.sightings;

DROP TABLE pgsimhash.pages;

DROP FUNCTION pgsimhash.host_of(text);

DROP TABLE pgsimhash.collections;

DROP TABLE pgsimhash.layouts;

DROP FUNCTION pgsimhash.simhashes_inserted();

DROP FUNCTION pgsimhash.simhashes_deleted();

DROP FUNCTION pgsimhash.simhashes_updated();
