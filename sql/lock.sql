-- Locks tables that a revision changes while others use them. Everybody who comes later waits behind a
-- waiting lock, so each attempt is short, and the others go on between two of them. It is shorter than
-- deadlock_timeout, so that no other session fails.
DO $$
DECLARE
    present constant text := current_setting('lock_timeout');
BEGIN
    FOR attempt IN 1..100 LOOP
        BEGIN
            SET LOCAL lock_timeout = '900ms';
            LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE;
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
