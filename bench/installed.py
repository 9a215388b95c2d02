"""Peers from PyPI, installed into a folder of their own and imported from there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def install_peers(packages: Iterable[str], folder: Path) -> list[str]:
    """Install each package into ``folder``; return those that could be, tell of the others."""
    installed = []
    for package in packages:
        print(f"installing {package} ...", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
        done = subprocess.run([*command, package], capture_output=True, text=True)
        if done.returncode == 0:
            installed.append(package)
        else:
            print(f"{package} cannot be installed: {done.stderr.strip()[-200:]}", file=sys.stderr)
    return installed


def make_importable(folder: Path | None) -> None:
    """Let imports find what is in ``folder``, after everything that is installed here."""
    if folder is not None:
        sys.path.append(str(folder))
