"""Compute a 64-bit simhash from text: tokens, features, hashes and votes, without a database."""
