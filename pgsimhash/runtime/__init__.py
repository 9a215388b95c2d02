"""Inspect and use this machine and process: memory, cores, progress, output files."""


def no_progress(*counts: object) -> None:
    """Ignore the progress."""
