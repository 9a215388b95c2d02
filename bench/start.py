"""How long `import pgsimhash` and `pgsimhash --help` take.

python bench/start.py [--rounds N]

Each is a process of its own, the fastest of N that take turns. Beside them stand `import psycopg`
and the --help of a click program that does nothing. What Python itself takes to start is in all
figures, and the ratios are of what is left without it.
"""

from __future__ import annotations

import subprocess
import sys
import time

import click

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

HELP = "from pgsimhash.cli import main; main()"

PROGRAMS = {
    "python": ["pass"],
    "import psycopg": ["import psycopg"],
    "import pgsimhash": ["import pgsimhash"],
    "pgsimhash.fingerprint": ["from pgsimhash import fingerprint"],
    "pgsimhash.connect": ["from pgsimhash import connect"],
    "click --help": [BARE],
    "pgsimhash --help": [HELP, "--help"],
    "pgsimhash find --help": [HELP, "find", "--help"],
}

BESIDE = {
    "import pgsimhash": "import psycopg",
    "pgsimhash.fingerprint": "import psycopg",
    "pgsimhash.connect": "import psycopg",
    "pgsimhash --help": "click --help",
    "pgsimhash find --help": "click --help",
}


def milliseconds(arguments: list[str]) -> float:
    """Return how long a Python process takes."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


@click.command()
@click.option("--rounds", default=10, show_default=True)
def main(rounds: int) -> None:
    """Measure how long the package takes to start."""
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, arguments in PROGRAMS.items():
            taken[name].append(milliseconds(arguments))
    fastest = {name: min(times) for name, times in taken.items()}
    for name, time_taken in fastest.items():
        line = f"{name:<22} {time_taken:7.0f} ms"
        if name in BESIDE:
            own = time_taken - fastest["python"]
            other = fastest[BESIDE[name]] - fastest["python"]
            line += f"   {own / other:5.2f} x {BESIDE[name]}"
        print(line)


if __name__ == "__main__":
    main()
