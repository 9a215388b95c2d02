"""What the tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """stdout as JSON lines; a line that is none fails the test."""
        return [json.loads(line) for line in self.stdout.splitlines()]


Run = Callable[..., Result]
