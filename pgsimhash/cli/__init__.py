"""The command line: data as JSON lines on stdout, everything for people on stderr.

Exit codes: 0 done; 1 some pages failed, or nothing was found; 2 a wrong option or value, or no such
file or collection; 3 the database or the schema cannot be used as it is; 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["INTERRUPTED", "STOPPED", "main"]

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C."""

STOPPED: Final = "Stopped. What was committed stays; run again to continue."


def main() -> None:
    """Run this process's command."""
    # Nothing is imported out of here, so that Ctrl-C ends in one line from the beginning.
    try:
        from pgsimhash.cli.commands import commands

        commands(prog_name="pgsimhash")
    except KeyboardInterrupt:
        sys.stderr.write(f"{STOPPED}\n")
        sys.exit(INTERRUPTED)
