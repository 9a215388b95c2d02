"""Run the fault tests many times: kill writers and servers, cut connections, fill disks.

    python bench/faults.py [--rounds N] [--jobs N]

It runs tests/faults/ with other random moments in each round. For each test it prints the numbers
of faults and of acknowledged pages; how many of these are lost, repeated or stored with another
verdict; and the violations that `pgsimhash check` found.
With PGSIMHASH_TEST_CITUS_DSN it kills processes of that Citus cluster instead, on this machine. It
also kills servers if PGSIMHASH_TEST_CITUS_CRASH has a shell command that kills the node
$NODE_HOST:$NODE_PORT and starts it again: docker kill $NODE_HOST && docker start $NODE_HOST.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import click

ROOT = Path(__file__).parent.parent


@click.command()
@click.option("--rounds", default=10, show_default=True)
@click.option("--jobs", default=2, show_default=True)
def main(rounds: int, jobs: int) -> None:
    """Run the fault tests in rounds, and print the measurements."""
    started = time.monotonic()
    chosen = ["-n", str(jobs), "tests/faults"]
    if "PGSIMHASH_TEST_CITUS_DSN" in os.environ:
        chosen = ["tests/faults/test_citus.py"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.jsonl"
        report.touch()
        surroundings = {
            "PGSIMHASH_FAULT_ROUNDS": str(rounds),
            "PGSIMHASH_FAULT_REPORT": str(report),
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *chosen],
            cwd=ROOT,
            env={**os.environ, **surroundings},
            check=False,
        )
        lines = [json.loads(line) for line in report.read_text().splitlines()]
    figures: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in lines:
        of_test = figures[line.pop("test")]
        for name, value in line.items():
            longest = name.startswith("seconds")
            of_test[name] = max(of_test[name], value) if longest else of_test[name] + value
    print("| test | faults | pages acknowledged | lost | doubled | wrong | violations |")
    print("|---|---|---|---|---|---|---|")
    for test, row in sorted(figures.items()):
        cells = (f"{row[name]:,.0f}" for name in _COLUMNS)
        print(f"| {test.removeprefix('test_').replace('_', ' ')} | {' | '.join(cells)} |")
    for test, row in sorted(figures.items()):
        for name in sorted(set(row) - set(_COLUMNS)):
            print(f"{test}: {name} {row[name]:.2f} at most")
    print(f"{time.monotonic() - started:,.0f} seconds, {rounds} rounds")
    sys.exit(done.returncode)


_COLUMNS = ("faults", "acknowledged", "lost", "doubled", "wrong", "violations")


if __name__ == "__main__":
    main()
