"""Say numbers as people do."""

from collections.abc import Iterable


def percent(share: float) -> str:
    """Return a share in per cent: two digits, and never "0%" or "100%" of what is not."""
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.9995 < share < 1:
        return "over 99.9%"
    is_precise = share < 0.0995 or 0.99 < share < 1
    return f"{share:.1%}" if is_precise and share > 0 else f"{share:.0%}"


def counted(count: int, one: str, more: str | None = None) -> str:
    """Return a number and its noun: "1 page", "1,200 pages"."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def listed(parts: Iterable[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def shortened(text: str, most: int) -> str:
    """Return at most ``most`` characters of a text, cut at a space if there is one near."""
    if len(text) <= most:
        return text
    cut = text[: most - 2]
    return f"{cut[: max(cut.rfind(' '), most // 2)].rstrip()} …"
