"""Whether ``pgsimhash._native`` can be used; ``PGSIMHASH_NATIVE=0`` turns it off."""

import os
from sys import implementation

is_built = os.environ.get("PGSIMHASH_NATIVE") != "0" and implementation.name == "cpython"
if is_built:
    try:
        import pgsimhash._native  # noqa: F401
    except ImportError:
        is_built = False
