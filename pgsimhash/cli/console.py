"""The console for tables, progress bars and messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from pgsimhash.cli.printing import printable, printable_lines


class PrintableConsole(Console):
    """A console that removes control characters, except Rich's own."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the rendered text."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the rendered segments."""
        # A Text created elsewhere was measured already; escaping keeps it harmless.
        for segment in super().render(renderable, options):
            shown = printable_lines(segment.text)
            if segment.control or shown == segment.text:
                yield segment
            else:
                yield Segment(shown, segment.style)
