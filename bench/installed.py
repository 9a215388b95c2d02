"""Install peers from PyPI into a folder, and import them from there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def install_peers(packages: Iterable[str], folder: Path) -> list[str]:
    """Install each package into ``folder``; return the installed ones, and report the others."""
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
    """Let imports find the packages in ``folder``, after all installed ones."""
    if folder is not None:
        sys.path.append(str(folder))
