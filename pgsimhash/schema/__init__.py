"""The schema of the package: its scripts and revisions, and databases that have it."""
