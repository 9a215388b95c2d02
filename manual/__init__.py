"""Build docs/ and the generated reference as a site."""
