"""How much memory and how many cores there are: in a container, what it is given."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUPS: Final = Path("/proc/self/cgroup")
_ABOUT_THIS: Final = Path("/proc/self/status")


def memory_bytes(groups: Path = _GROUPS, own: Path = _OWN_GROUPS) -> int:
    """Return the memory of the machine, or what the control groups of this process are given.

    Args:
        groups: where the control groups are.
        own: which of them this process is in, as Linux tells.
    """
    said = (
        _read(folder / name).strip()
        for folder in _folders("memory", groups, own)
        for name in ("memory.max", "memory.limit_in_bytes")
    )
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(int(limit) for limit in said if limit.isdecimal())])


def limit_memory(more: int) -> None:
    """Let this process take so many bytes more than it holds; more fails with ``MemoryError``.

    Of no effect where the system does not tell what a process holds: Linux does.
    """
    held = re.search(r"^VmData:\s*(\d+) kB", _read(_ABOUT_THIS), re.MULTILINE)
    if held is not None:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = int(held[1]) * 1024 + more
        if most == resource.RLIM_INFINITY or wanted < most:
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def usable_cores(groups: Path = _GROUPS, own: Path = _OWN_GROUPS) -> int:
    """Return how many cores this process may use, 1 or more.

    These are the ones that it is bound to (``taskset``, ``--cpuset-cpus``), and no more than the
    time that its control groups are given (``docker run --cpus``, a limit of Kubernetes), a part
    of a core counting as one.

    Args:
        groups: where the control groups are.
        own: which of them this process is in, as Linux tells.
    """
    return max(1, min([_bound_to(), *map(math.ceil, _limits(groups, own))]))


def _bound_to() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        # macOS and Windows do not tell.
        return os.cpu_count() or 1


def _limits(groups: Path, own: Path) -> Iterator[float]:
    """Yield the limits of the groups of this process, in cores."""
    for folder in _folders("cpu", groups, own):
        quota, period = _quota(folder)
        if quota.isdecimal() and period.isdecimal() and int(period):
            yield int(quota) / int(period)


def _folders(controller: str, groups: Path, own: Path) -> Iterator[Path]:
    """Yield the groups of this process for a controller; the limit of each holds for all below."""
    for line in _read(own).splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        # Version 2 has one tree, version 1 one for each controller.
        root = groups / controllers if controllers else groups
        group = root / name.lstrip("/")
        # Within a container the name may be the one outside, and its own group is the root.
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root):
                break
            yield folder


def _quota(folder: Path) -> tuple[str, str]:
    """Return the microseconds that a group may run, and of how many; no number if without limit."""
    quota, _, period = _read(folder / "cpu.max").strip().partition(" ")
    if quota:
        return quota, period
    quota, period = (_read(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    return quota, period


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
