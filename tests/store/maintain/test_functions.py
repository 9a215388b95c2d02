"""The functions of pgsimhash.maintenance are the methods of these names, of a store."""

from typing import Any

import psycopg
import pytest

from pgsimhash import Store, connect, maintenance
from pgsimhash.errors import CollectionError, StoreError
from tests.refusals import because


def test_each_function_is_the_method_of_its_name() -> None:
    functions = {name: getattr(maintenance, name) for name in maintenance.__all__}
    del functions["delete_collection"]
    assert functions.pop("status") is Store.collections
    assert functions == {name: getattr(Store, name) for name in functions}


@pytest.mark.one_server("tables elsewhere cannot refer to those of a distributed schema")
def test_a_collection_is_deleted_over_a_connection(connection: psycopg.Connection[Any]) -> None:
    with connect(connection, collection="old", create=True) as store:
        store.add_page("https://a.example/", 7)
        assert [one.name for one in maintenance.status(store)] == ["old"]
    with pytest.raises(CollectionError, check=because("unknown")):
        maintenance.delete_collection(connection, "typo")
    connection.execute("CREATE TABLE mine AS SELECT collection_id, page_id FROM pgsimhash.pages")
    connection.execute(
        "ALTER TABLE mine ADD FOREIGN KEY (collection_id, page_id) REFERENCES pgsimhash.pages"
        " (collection_id, page_id)"
    )
    with pytest.raises(StoreError):
        maintenance.delete_collection(connection, "old")
    connection.execute("DROP TABLE mine")
    assert maintenance.delete_collection(connection, "old") == 1
