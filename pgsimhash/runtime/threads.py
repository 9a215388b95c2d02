"""Call functions that release the GIL in threads."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from pgsimhash.errors import check_number

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_threads(
    function: Callable[[_Item], _Result], items: Iterable[_Item], jobs: int
) -> Iterator[_Result]:
    """Yield the result for each item, in order; a few are computed ahead."""
    if check_number("jobs", jobs) == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(jobs) as pool:
        running: deque[Future[_Result]] = deque()
        for item in items:
            running.append(pool.submit(function, item))
            if len(running) > 2 * jobs:
                yield running.popleft().result()
        yield from (future.result() for future in running)
