"""The package's one logger, ``pgsimhash``: quiet unless its user gives it a handler."""

from __future__ import annotations

import logging
from typing import Final

logger: Final = logging.getLogger("pgsimhash")
logger.addHandler(logging.NullHandler())
