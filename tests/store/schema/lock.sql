-- Locks tables that a revision changes while others use them. Everybody who comes later waits behind a
-- waiting lock, so each attempt is short, and the others go on between two of them. It is shorter than
-- deadlock_timeout, so that no other session fails.
DO $$
DECLARE
    present constant text := current_setting('lock_timeout');
    latest timestamptz;
    target text;
BEGIN
    FOR attempt IN 1..100 LOOP
        latest := clock_timestamp() + interval '900 milliseconds';
        BEGIN
            FOREACH target IN ARRAY ARRAY['${tables}'] LOOP
                PERFORM set_config('lock_timeout', greatest(
                    1, 1000 * extract(epoch FROM latest - clock_timestamp())
                )::integer::text, true);
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', target);
            END LOOP;
            PERFORM set_config('lock_timeout', present, true);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF attempt = 100 THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(1 + random());
    END LOOP;
END
$$
