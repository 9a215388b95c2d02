"""Without the C extension, or with a different lxml, the Python code reads all pages."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from lxml import etree

from pgsimhash.html import native
from tests.conftest import ROOT

SHOWN = "import pgsimhash.html; print(pgsimhash.html.implementation())"


def shown(**variables: str) -> str:
    command = [sys.executable, "-c", SHOWN]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_it_can_be_turned_off() -> None:
    assert shown(PGSIMHASH_NATIVE="0") == "Python"
    assert shown(PGSIMHASH_NATIVE="1") in ("C", "Python")


@pytest.mark.parametrize(
    ("name", "value"),
    [("ELEMENT_SIZE", 48), ("describe", lambda element: ("p", None, None, None, 0))],
)
def test_an_element_that_does_not_fit(
    name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension = pytest.importorskip("pgsimhash._native", reason="the C extension is not built")
    assert native.fits_lxml(extension)
    monkeypatch.setattr(extension, name, value)
    assert not native.fits_lxml(extension)


def test_a_version_of_libxml2_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    extension = pytest.importorskip("pgsimhash._native", reason="the C extension is not built")
    monkeypatch.setattr(etree, "LIBXML_VERSION", (3, 0, 0))
    assert not native.fits_lxml(extension)
