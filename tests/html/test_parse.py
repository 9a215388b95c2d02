"""Pages that would take quadratic time are detected before they are parsed."""

from __future__ import annotations

from pgsimhash.html.parse import may_crowd_attributes
from tests.html.test_hostile_html import TEXT

ATTRIBUTES = " ".join(f"a{number}" for number in range(30_000))


CROWDED = [
    f"<p {ATTRIBUTES}>", f"<script a='>' {ATTRIBUTES}>", f'<p " a=">" {ATTRIBUTES}>',
    f"<p a='<' {ATTRIBUTES}>", f"<p {ATTRIBUTES}", f"<i {ATTRIBUTES[:40_000]}>" * 3,
]  # fmt: skip
ORDINARY = [
    TEXT, f"<p>{TEXT * 1000}", f'<script type="module">{"let a = 1;" * 20_000}</script>',
    f'<div class="x" data-all="{"&quot;a&quot;: 1, " * 20_000}">',
    f"<style media='print'>{'p > a { color: red }' * 9000}</style>", "<p class=x>boats</p>" * 5000,
]  # fmt: skip


def test_only_tags_with_thousands_of_attributes_are_known_before() -> None:
    assert all(may_crowd_attributes(page.encode()) for page in CROWDED)
    assert not any(may_crowd_attributes(page.encode()) for page in ORDINARY)
