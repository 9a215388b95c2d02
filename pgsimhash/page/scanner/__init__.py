"""Reads a page in one pass over its bytes, as loops that numba compiles (extra ``fast``)."""
