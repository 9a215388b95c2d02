"""What an HTML page of this package may do: be looked at.

The policy goes into each page and makes sure of it: no script, no request, and no style but the
page's own, which it knows by its hash (W3C, "Content Security Policy Level 3", 2.3.1).
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

_POLICY: Final = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"


def content_policy(style: str) -> str:
    """Return the policy of a page with nothing but ``style`` in its one style element."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _POLICY.format(digest)
