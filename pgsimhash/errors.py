"""Every error pgsimhash raises on purpose; each message names the fix."""

from __future__ import annotations


class PgsimhashError(Exception):
    """Base of all errors of this package."""


class InvalidSimhashError(PgsimhashError, ValueError):
    """A value is not a 64-bit simhash."""


class InvalidDistanceError(PgsimhashError, ValueError):
    """A Hamming distance is outside what the collection's layout answers."""


class UnknownLayoutError(PgsimhashError, ValueError):
    """No layout has this name."""


class UnknownRuleError(PgsimhashError, ValueError):
    """No rule or option has this name."""


class InvalidWeightError(PgsimhashError, ValueError):
    """A feature's weight is negative or not finite, or the weights are too large together."""


class SchemeError(PgsimhashError, ValueError):
    """A scheme is unknown, its name is taken, or it cannot be sent to other processes."""


class InvalidRecipeError(PgsimhashError, ValueError):
    """A part of a recipe was given what it cannot use: a size of zero, an unknown damping."""


class MissingPackageError(PgsimhashError, ImportError):
    """A package that is an extra of this one is not installed."""


class LabelsError(PgsimhashError, ValueError):
    """A file of labelled pairs cannot be used; the message names the lines."""


class InvalidHintError(PgsimhashError, ValueError):
    """A site hint names no host, or its selector is none."""


class PageError(PgsimhashError, ValueError):
    """One page cannot become a fingerprint; the other pages of a batch go on.

    ``reason`` is a short stable code (``"too_large"``), the message is for people.
    """

    reason = "failed"

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class TooShortError(PageError):
    """The page holds too little text: its simhash would match every other such page."""

    reason = "too_short"


class ErrorPageError(TooShortError):
    """The page says that there is none ("page not found"), and next to nothing else."""

    reason = "error_page"


class BlockedPageError(TooShortError):
    """The page wants a check first: a captcha, JavaScript or cookies. Fetch it another way."""

    reason = "blocked"


class ScriptPageError(TooShortError):
    """The page is a shell that scripts fill in a browser. Fetch it with one."""

    reason = "needs_script"


class TooLargeError(PageError):
    """The page is larger than the limit."""

    reason = "too_large"


class NotHtmlError(PageError):
    """The bytes are not an HTML page (an image, an archive, a PDF, ...)."""

    reason = "not_html"


class UnreadableError(PageError):
    """The page could not be read: a missing file, a broken record, a bad JSON line."""

    reason = "unreadable"


class InvalidUrlError(PageError):
    """The page's URL is not one."""

    reason = "invalid_url"


class UnknownPageError(PageError):
    """The store does not know the URL."""

    reason = "unknown_page"


class InvalidTimeError(PageError):
    """A time is none, names no zone, is in the future or before 1970, or an age is none."""

    reason = "invalid_time"


class StoreError(PgsimhashError):
    """The database cannot be used as it is."""


class NoServerError(StoreError):
    """No PostgreSQL server answers, or it refuses the login."""


class EmbeddedServerError(StoreError):
    """The bundled PostgreSQL server is not installed or does not start."""


class SharedStoreError(StoreError):
    """A store is used by another thread or process than its own, or within one of its own calls."""


class SchemaError(StoreError):
    """The schema ``pgsimhash`` is missing, or older or newer than this package."""


class CollectionError(StoreError):
    """The collection is unknown, or its scheme or layout is another than the caller's."""


class UnknownRunError(StoreError, LookupError):
    """No run of the collection has this number, or none is left to undo."""


class MarkError(PgsimhashError, ValueError):
    """A mark is about one URL only, or contradicts other marks."""


class PolicyError(PgsimhashError, ValueError):
    """A policy's pattern or settings are none, or contradict the layout or the scheme."""
