"""Without the C extension, or with a different lxml, the Python code reads all pages."""

import pytest
from lxml import etree

from pgsimhash.html import native
from tests.programs import python


def test_it_can_be_turned_off() -> None:
    shown = "import pgsimhash.html; print(pgsimhash.html.implementation())"
    assert python(shown, PGSIMHASH_NATIVE="0") == "Python\n"
    assert python(shown, PGSIMHASH_NATIVE="1") in ("C\n", "Python\n")


@pytest.mark.parametrize(("name", "value"), [
    ("ELEMENT_SIZE", 48), ("describe", lambda element: ("p", None, None, None, 0)),
    ("LIBXML_VERSION", (3, 0, 0)),
])  # fmt: skip
def test_what_does_not_fit_lxml(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    extension = pytest.importorskip("pgsimhash._native", reason="the C extension is not built")
    assert native.fits_lxml(extension)
    monkeypatch.setattr(etree if name.startswith("LIB") else extension, name, value)
    assert not native.fits_lxml(extension)
