"""Measure start-up times: imports, each command's --help, and a lookup.

    python bench/start.py [--rounds N]

Each runs in its own process, the fastest of N alternating runs. `import psycopg` and the --help of
an empty click program serve as references. All times include the start of Python itself, and the
ratios are without it. Commands come last, the slowest first.

`find 0` uses the embedded server in a temporary folder: warm while another process uses it, and
cold otherwise, so that it starts and stops. `collection list` creates it and its data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from pgsimhash.cli.commands import commands
from pgsimhash.embedded.place import DATA_DIR_VARIABLE

BARE = """
import click

@click.group()
def main():
    pass

@main.command()
def nothing():
    pass

main(["--help"])
"""

COMMAND = "from pgsimhash.cli import main; main()"

FIND = [COMMAND, "find", "0", "--dsn", "embedded"]

USE = """
import sys
import pgsimhash

store = pgsimhash.connect("embedded")
store.add("https://example.com/", 0)
print("ready", flush=True)
sys.stdin.read()
"""

IMPORTS = {
    "python": ["pass"],
    "import psycopg": ["import psycopg"],
    "import pgsimhash": ["import pgsimhash"],
    "pgsimhash.fingerprint": ["from pgsimhash import fingerprint"],
    "pgsimhash.connect": ["from pgsimhash import connect"],
    "pgsimhash.Store": ["from pgsimhash import Store"],
    "click --help": [BARE],
}

Taken = dict[str, float]


def milliseconds(arguments: list[str]) -> float:
    """Return the time of a Python process."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


def fastest(programs: dict[str, list[str]], rounds: int) -> Taken:
    """Return the shortest time of each program."""
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, arguments in programs.items():
            taken[name].append(milliseconds(arguments))
    return {name: min(times) for name, times in taken.items()}


def words(group: click.Group) -> Iterator[list[str]]:
    """Yield the words of each command and group."""
    yield []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        rest = words(command) if isinstance(command, click.Group) else [[]]
        yield from ([name, *more] for more in rest)


@contextmanager
def used() -> Iterator[None]:
    """Let another process use the embedded server during the block."""
    with subprocess.Popen(
        [sys.executable, "-c", USE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as user:
        assert user.stdin is not None
        assert user.stdout is not None
        user.stdout.readline()
        yield
        user.stdin.close()


def looked_up(rounds: int) -> Taken:
    """Return the times of `find 0`: warm, cold, and with a newly created server."""
    taken: Taken = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ[DATA_DIR_VARIABLE] = str(Path(folder, "data"))
        Path(folder).chmod(0o755)  # the server of root is another user's
        with used():
            taken |= fastest({"find 0, warm": FIND}, rounds)
        taken |= fastest({"find 0, cold": FIND}, rounds)
        listed = [COMMAND, "collection", "list", "--dsn", "embedded"]
        created = []
        for number in range(min(rounds, 3)):
            os.environ[DATA_DIR_VARIABLE] = str(Path(folder, str(number)))
            created.append(milliseconds(listed))
        taken["collection list, created"] = min(created)
    return taken


@click.command()
@click.option("--rounds", default=10, show_default=True)
def main(rounds: int) -> None:
    """Measure how long the package takes to start."""
    helps = {" ".join([*typed, "--help"]): [COMMAND, *typed, "--help"] for typed in words(commands)}
    taken = fastest(IMPORTS | helps, rounds) | looked_up(rounds)
    bare = taken["python"]
    others = [name for name in taken if name not in IMPORTS]
    for name in [*IMPORTS, *sorted(others, key=taken.__getitem__, reverse=True)]:
        beside = "click --help" if name in helps else "import psycopg"
        ratio = (taken[name] - bare) / (taken[beside] - bare)
        print(f"{name:<32} {taken[name]:7.0f} ms   {ratio:5.2f} x {beside}")


if __name__ == "__main__":
    main()
