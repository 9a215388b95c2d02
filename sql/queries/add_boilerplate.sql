INSERT INTO pgsimhash.boilerplates (version, digest, base, pages)
VALUES (%(version)s, %(digest)s, %(base)s, %(pages)s)
ON CONFLICT (version) DO NOTHING
