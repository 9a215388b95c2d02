"""What docs/schemes.md shows is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pgsimhash import parse_simhash
from pgsimhash.schemes import scheme_names

ROOT = Path(__file__).parent.parent
SCHEMES = (ROOT / "docs" / "schemes.md").read_text(encoding="utf-8")


def test_the_code_runs() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", SCHEMES, re.DOTALL | re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().isdecimal()


def test_every_scheme_is_in_the_table() -> None:
    shipped = [name for name in scheme_names() if name.startswith("pgsimhash-")]
    table = SCHEMES[: SCHEMES.index("What to take")]
    assert re.findall(r"^\| `(pgsimhash-[^`]+)`", table, re.MULTILINE) == shipped


def test_the_forms_are_one_simhash() -> None:
    forms = re.findall(r"^\| (?:hex|decimal|base32) \| `([^`]+)`", SCHEMES, re.MULTILINE)
    assert len(forms) == 3
    assert {parse_simhash(form) for form in forms} == {0xF09F8DDE00000001}
