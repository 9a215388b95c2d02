"""A real local Spark in this process: two cores, and few partitions."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

HERE = importlib.util.find_spec("pyspark") is not None and bool(
    os.environ.get("JAVA_HOME") or shutil.which("java")
)
IS_USED = HERE or os.environ.get("PGSIMHASH_TEST_SPARK") == "required"

needs_spark = pytest.mark.skipif(not IS_USED, reason="PySpark or Java is not installed")


@contextmanager
def session() -> Iterator[Any]:
    """Lend a session whose workers use this Python."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        yield made
    finally:
        made.stop()
