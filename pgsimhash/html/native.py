"""Read pages by the C extension ``pgsimhash._native``, if it was built and fits lxml.

The sources are in ``native/``; each file there follows a module of this package, and one test
compares the two bit by bit. The extension reads nearly all pages. What is rare, such as a comment in
the tree, it leaves to the Python code, and so does a package that was installed without a compiler.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from lxml import etree, html
from lxml.html import HtmlElement

from pgsimhash.hashing.signature import sources
from pgsimhash.hashing.tokens import complex_words, is_mark, signed_table
from pgsimhash.html.blocks import BLOCK, _EMPTY, _PLAIN
from pgsimhash.html.names import _HIDING, _SAYINGS, NEVER_TEXT
from pgsimhash.html.numbers import _FLAGS, _YEARS
from pgsimhash.html.page_words import _LEGAL
from pgsimhash.html.structure import _CONTAINERS
from pgsimhash.html.tree import _TAGS
from pgsimhash.html.weights import COEFFICIENTS
from pgsimhash.html.head_tags import HEAD
