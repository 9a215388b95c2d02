SELECT name FROM pgsimhash.collections ORDER BY name
