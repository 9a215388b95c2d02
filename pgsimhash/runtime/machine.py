"""Determine the available memory and cores, within the limits of a container."""

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN_GROUP: Final = Path("/proc/self/cgroup")
_ABOUT_THIS: Final = Path("/proc/self/status")


def memory_bytes() -> int:
    """Return the bytes of memory of the machine, or the limit of this process's control groups.

    Only version 2 of control groups is read: distributions and Kubernetes use no other by default.
    """
    limits = (_read(folder / "memory.max").strip() for folder in _folders())
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(int(limit) for limit in limits if limit.isdecimal())])


def limit_memory(more: int) -> None:
    """Limit this process to ``more`` bytes above its current memory; more is a ``MemoryError``.

    It has an effect only on Linux, which reports the memory of a process.
    """
    used = re.search(r"^VmData:\s*(\d+) kB", _read(_ABOUT_THIS), re.MULTILINE)
    if used is not None:
        import resource

        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        limit = int(used[1]) * 1024 + more
        if hard_limit == resource.RLIM_INFINITY or limit < hard_limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, hard_limit))


def usable_cores() -> int:
    """Return how many cores this process may use, 1 or more.

    The CPU affinity (``taskset``, ``--cpuset-cpus``) and the quota of its control groups (``docker
    run --cpus``, a limit of Kubernetes) limit the number. Fractions of a core are rounded up.
    """
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    limits: list[float] = [len(affinity(0)) if affinity else os.cpu_count() or 1]
    for folder in _folders():
        # The quota and its period. Without a limit, the quota is not a number.
        values = _read(folder / "cpu.max").split()
        if len(values) == 2 and all(map(str.isdecimal, values)) and int(values[1]):
            limits.append(int(values[0]) / int(values[1]))
    return max(1, math.ceil(min(limits)))


def _folders() -> Iterator[Path]:
    """Yield the group of this process and those above it; a limit includes the groups below."""
    if name := re.search(r"^0::/(.*)", _read(_OWN_GROUP), re.MULTILINE):
        group = _GROUPS / name[1]
        # In a container the name may be that of the host, and the own group is the root.
        yield from (path for path in (group, *group.parents) if path.is_relative_to(_GROUPS))


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
