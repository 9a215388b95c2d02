COPY pgsimhash.boilerplate_hosts (version, host, paragraphs) FROM STDIN
