"""A scheme that may hang, in a module that a process that reads pages imports fast."""

import os
import re

from pgsimhash.html import Article
from pgsimhash.schemes import Scheme, ShingleWeights, read_text, register_scheme


def read_or_hang(html: bytes | str, url: str | None, charset: str | None) -> Article:
    """Reads a page, very slowly if it says so; no signal handler runs meanwhile."""
    if html == "hang":
        re.match("(a|a)+$", "a" * 99 + "b")
    made = read_text(html, url, charset)
    made.title = str(os.getpid())
    return made


HANGING = register_scheme(Scheme("own-hanging", read_or_hang, ShingleWeights()))
