"""Where tables, bars and sentences for people are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from pgsimhash.cli.printing import printable, printable_lines


class PrintableConsole(Console):
    """A console on which no character steers the terminal but those that Rich itself writes."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return what text becomes."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is drawn."""
        # What was made a Text elsewhere has its width by now, and still moves no cursor.
        for segment in super().render(renderable, options):
            shown = printable_lines(segment.text)
            if segment.control or shown == segment.text:
                yield segment
            else:
                yield Segment(shown, segment.style)
