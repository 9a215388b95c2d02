"""The drawing modules that commands use, in one lazy import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgsimhash.runtime.lazy_names import loaded_later

if TYPE_CHECKING:
    from rich.console import Console
    from rich.filesize import decimal
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TaskID,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.status import Status
    from rich.table import Table
    from rich.text import Text
else:
    __getattr__, __dir__ = loaded_later(
        __name__,
        {
            "rich.console": "Console",
            "rich.filesize": "decimal",
            "rich.progress": (
                "BarColumn MofNCompleteColumn Progress ProgressColumn TaskID TaskProgressColumn "
                "TextColumn TimeElapsedColumn TimeRemainingColumn"
            ),
            "rich.status": "Status",
            "rich.table": "Table",
            "rich.text": "Text",
        },
    )
