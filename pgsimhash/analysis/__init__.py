"""Why two pages match, how a page changed, and what a collection saved: pure, no database."""
