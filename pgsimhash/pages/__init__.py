"""Define what a page is and how pages are compared: records, URLs, times, policies."""
