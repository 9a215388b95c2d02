"""Turn the bytes of pages into records, in one process or several."""
