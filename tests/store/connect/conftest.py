"""A store over a source that the test names."""

from collections.abc import Iterator

import pytest

from tests.store.connect.ways import Opened, lent


@pytest.fixture
def opened(request: pytest.FixtureRequest, dsn: str) -> Iterator[Opened]:
    """A store over the source of ``ways.of``."""
    kind, asynchronous = request.param
    with lent(kind, dsn, asynchronous=asynchronous) as made:
        yield made
