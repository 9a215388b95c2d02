"""The command line: data as JSON lines on stdout, everything else on stderr."""

import signal
import sys
from typing import Any, Final

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, SIGTERM or SIGHUP."""

CLOSED: Final = 141
"""The exit code if the reader of stdout ends first: what a shell reports for SIGPIPE."""

STOPPED: Final = "Stopped. Committed work stays; run again to continue."


def main() -> None:
    """Run the command of this process."""
    # All imports happen inside, so that Ctrl-C ends in one line from the beginning.
    try:
        _end_as_by_ctrl_c()
        from pgsimhash.cli.commands import commands

        commands(prog_name="pgsimhash")
    except KeyboardInterrupt:
        sys.stderr.write(f"{STOPPED}\n")
        sys.exit(INTERRUPTED)


def _end_as_by_ctrl_c() -> None:
    """Handle SIGTERM and SIGHUP like Ctrl-C, unless they are ignored (nohup)."""
    numbers = [signal.SIGTERM, signal.SIGHUP] if hasattr(signal, "SIGHUP") else [signal.SIGTERM]

    def stop(*_: Any) -> None:
        # A second signal, such as timeout(1) sends to the group, must not disturb the shutdown.
        for number in numbers:
            signal.signal(number, lambda *_: None)
        raise KeyboardInterrupt

    for number in numbers:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)
