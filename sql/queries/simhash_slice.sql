-- One value of eight bytes a simhash: five times as fast as COPY, which sends a message a row.
SELECT string_agg(int8send(simhash), ''::bytea)
FROM pgsimhash.simhashes
WHERE prefix_1 >= %(first)s AND prefix_1 < %(beyond)s
