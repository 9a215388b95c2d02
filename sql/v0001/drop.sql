DROP FUNCTION pgsimhash.has_near_duplicate(bigint, integer, text);

DROP FUNCTION pgsimhash.near_duplicates(bigint[], integer, text);

DROP FUNCTION pgsimhash.near_duplicates(bigint, integer, text);

DROP FUNCTION pgsimhash.collection_of_lookup(text, integer);

DROP FUNCTION pgsimhash.probes(bigint, integer, integer, integer);

DROP FUNCTION pgsimhash.flips(integer, integer);

DROP FUNCTION pgsimhash.prefix(bigint, integer, integer);

DROP FUNCTION pgsimhash.radii(integer);

DROP FUNCTION pgsimhash.hamming_distance(bigint, bigint);

DROP FUNCTION pgsimhash.bit_count(bigint);

DROP TABLE pgsimhash.pages;

DROP TABLE pgsimhash.simhashes;

DROP TABLE pgsimhash.collections;
