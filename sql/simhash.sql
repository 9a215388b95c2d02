-- Simhashes as numbers and as text.

-- The number of set bits, 0 to 64.
--
-- PostgreSQL has bit_count for bytea and bit only.
CREATE FUNCTION pgsimhash.bit_count(bits bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count(bits::bit(64))::integer;

-- The number of bits in which two simhashes differ, 0 to 64.
CREATE FUNCTION pgsimhash.hamming_distance(a bigint, b bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN pg_catalog.bit_count((a # b)::bit(64))::integer;

-- The eight bytes of a simhash, big-endian, as 13 digits of RFC 4648's base32, without padding.
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

-- The simhash of a text by to_base32, in either case; an error for any other text.
CREATE FUNCTION pgsimhash.from_base32(digits text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF digits !~ '^[a-zA-Z2-7]{12}[aAcCeEgGiIkKmMoOqQsSuUwWyY246](===)?$' THEN
        RAISE EXCEPTION '"%" is not base32 of eight bytes', digits
            USING ERRCODE = 'PS010',
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

-- The simhash of the 64-bit hashes of features and their weights, by default 1 each.
--
-- Like pgsimhash.simhash in Python: a set bit adds a feature's weight, a clear bit subtracts it,
-- and the simhash has a 1 where the sum is above zero (Charikar 2002). Weights are rounded to units
-- of 2**-16, so that sums are exact.
CREATE FUNCTION pgsimhash.simhash(
    features bigint[], weights double precision[] DEFAULT NULL
) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF weights IS NOT NULL AND cardinality(weights) <> cardinality(features)
        OR EXISTS (
            SELECT FROM unnest(weights) AS w
            WHERE (w >= 0 AND w < 68719476736) IS NOT TRUE
        )
    THEN
        RAISE EXCEPTION 'each feature must have a finite weight of 0 or more'
            USING ERRCODE = 'PS010',
            HINT = 'Give two arrays of one length, or the features alone, each with weight 1.';
    ELSIF array_ndims(features) > 1
        OR array_position(features, NULL) IS NOT NULL
        OR NOT EXISTS (
            SELECT FROM unnest(features, weights) AS f (feature, weight)
            WHERE weights IS NULL OR round(f.weight * 65536) > 0
        )
    THEN
        RAISE EXCEPTION 'a simhash needs a feature with a weight above 0, and no NULL'
            USING ERRCODE = 'PS010', HINT = 'Give the 64-bit hashes of the features as an array.';
    END IF;
    RETURN (
        SELECT bit_or(CASE WHEN v.vote > 0 THEN 1::bigint << v.bit ELSE 0 END)
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
        ) AS v
    );
END
$$;

-- The same as verified in pgsimhash/hashing/signature.py, with the same numbers: the upper half is a
-- second simhash; of the lower one, 7 bits are a size, the next one marks plain texts, and the others
-- estimate the share of common features.
-- Without a signature, every match is confirmed. Not STRICT, so that PostgreSQL inlines it.
CREATE FUNCTION pgsimhash._verified(
    distance integer, a_high bigint, a_low bigint, b_high bigint, b_low bigint
) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN least(
            (28 - pg_catalog.bit_count(((a_low # b_low) >> 8)::bit(56)))
            * (1 + 2 ^ (least(abs((a_low & 127) - (b_low & 127)), 8) / 8.0::double precision)),
            56 - pg_catalog.bit_count(((a_low # b_low) >> 8)::bit(56))
        )
        < (56 - pg_catalog.bit_count(((a_low # b_low) >> 8)::bit(56)))
        * (
            0.6298::double precision
            + CASE
                WHEN a_low & b_low & 128 = 0 AND least(a_low & 127, b_low & 127) < 50
                    THEN 0.015::double precision
                WHEN a_low & b_low & 128 = 0 THEN 0.018::double precision
                WHEN least(a_low & 127, b_low & 127) < 50 THEN 0.01::double precision
                ELSE 0.014::double precision
            END
                * (distance + pg_catalog.bit_count((a_high # b_high)::bit(64)))
        )
        IS NOT TRUE;
