"""The package's logger."""

from __future__ import annotations

import logging

import pytest

from pgsimhash import Store
from pgsimhash.log import logger
from tests.programs import python


def test_a_handler_receives_each_batch(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="pgsimhash"):
        list(store.add_many([("https://a.example/", 1), ("none", 2)]))
        list(store.decide_many([("https://a.example/", "<p>Short.")]))
    assert [(one.name, one.levelname, one.message) for one in caplog.records] == [
        ("pgsimhash", "DEBUG", "1 pages stored in 'default', 1 without a simhash"),
        ("pgsimhash", "DEBUG", "0 pages compared with 'default', 1 without a simhash"),
    ]


def test_without_a_handler_nothing_is_logged(dsn: str) -> None:
    code = "import sys, pgsimhash; pgsimhash.connect(sys.argv[1]).add('https://a.example/', 1)"
    assert python(code, dsn) == ""


def test_a_record_names_its_collection_and_run(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = store.start_run("test")
    with caplog.at_level(logging.DEBUG, logger="pgsimhash"):
        store.add("https://a.example/", 1)
        logger.warning("about no collection")
    fields = [(vars(one)["collection"], vars(one)["run_id"]) for one in caplog.records]
    assert fields == [("default", run_id), (None, None)]
