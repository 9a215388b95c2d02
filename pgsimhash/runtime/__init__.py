"""Inspect and use this machine and process: memory, cores, progress, output files."""
