"""Without the C extension, or with a different lxml, the Python code reads all pages."""

import re

import pytest
from lxml import etree

from pgsimhash.html import native
from tests.conftest import ROOT
from tests.programs import python


def test_it_can_be_turned_off() -> None:
    shown = "import pgsimhash.html; print(pgsimhash.html.implementation())"
    assert python(shown, PGSIMHASH_NATIVE="0") == "Python\n"
    assert python(shown, PGSIMHASH_NATIVE="1") in ("C\n", "Python\n")


@pytest.mark.parametrize(("name", "value"), [
    ("use_lxml", lambda: 48), ("describe", lambda element: ("p", None, None, None, 0)),
    ("LIBXML_VERSION", (3, 0, 0)),
])  # fmt: skip
def test_what_does_not_fit_lxml(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    extension = pytest.importorskip("pgsimhash._native", reason="the C extension is not built")
    assert native.fits_lxml(extension)
    monkeypatch.setattr(etree if name.startswith("LIB") else extension, name, value)
    assert not native.fits_lxml(extension)


def test_an_extension_built_with_a_newer_python_works_in_an_older_one() -> None:
    """A format with ``#`` does not: pip keeps wheels that it built for all versions."""
    sources = sorted((ROOT / "native").glob("*.c"))
    assert sources
    for source in sources:
        assert not re.search(r'"[\w*()!&]*#[^"\n]*"', source.read_text(encoding="utf-8")), source
