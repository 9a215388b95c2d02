"""Simhashes: the range, the sign in SQL, distances and text forms."""

import base64
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pgsimhash
from pgsimhash.errors import ArgumentError
from pgsimhash.hashing import bits
from tests.refusals import because

simhashes = st.integers(0, 2**64 - 1)


@given(simhashes)
@example(2**63)
def test_bigint_and_text_forms_round_trip(simhash: int) -> None:
    bigint = bits.to_bigint(simhash)
    assert bigint == int(np.uint64(simhash).astype(np.int64)) == bits.to_bigint(np.uint64(simhash))
    assert bits.from_bigint(bigint) == simhash
    written = pgsimhash.format_simhash(simhash)
    for form in (written, f" {written.upper()}\n", hex(simhash)):
        assert pgsimhash.parse_simhash(form) == simhash


@pytest.mark.parametrize(("text", "simhash"), [
    ("00000000000000ff", 255), ("0xff", 255), ("255", 255), ("-1", 2**64 - 1),
    ("18446744073709551615", 2**64 - 1), ("1234567890123456", 0x1234567890123456),
    ("0x22224f78848", 2345672345672), ("0x234567abcde", 0x234567ABCDE),
    # No eight bytes end in these digits of base32.
    ("2345672345673", 2345672345673), ("2345672345678", 2345672345678),
])  # fmt: skip
def test_a_simhash_is_read_from_hex_or_decimal(text: str, simhash: int) -> None:
    assert pgsimhash.parse_simhash(text) == simhash
    # Thirteen digits that can be both are refused, not guessed.
    with pytest.raises(ArgumentError, match="can be a decimal or base32"):
        pgsimhash.parse_simhash("2345672345672")
    assert pgsimhash.parse_simhash("2345672345672===") == bits.from_base32("2345672345672")


@given(simhashes)
@example(0)
@example(1)
@example(2**63)
@example(2**64 - 1)
def test_base32_is_the_eight_bytes_in_thirteen_digits_of_either_case(simhash: int) -> None:
    written = bits.to_base32(simhash)
    assert len(written) == 13
    assert base64.b32decode(f"{written.upper()}===") == simhash.to_bytes(8, "big")
    for form in (written, written.upper(), f"{written}===", f" {written.title()}\n"):
        assert bits.from_base32(form) == simhash
        if not written.isdigit():
            assert pgsimhash.parse_simhash(form) == simhash


NOT_BASE32 = [
    # No digit; a fifth bit in the last digit: the number, not its octets; wrong lengths.
    "aaaaaaaaaaaa1", "aaaaaaaaaaaab", "p777777777777", "aaaaaaaaaaaa", "aaaaaaaaaaaaaa",
    "aaaaaaaaaaaaa=", "aaaaaaaaaaaaa====", "aaaaaa aaaaaa", "",
    # The sign of the Kelvin, whose small letter is k; other alphabets: base32hex, Crockford's.
    "aaaaaaaaaaa\u212aa", "aaaaaaaaaaa\u0663a", "pbh4n3yaaaaaé", "0000000000000", "1OL0000000000",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_BASE32)
def test_invalid_base32_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="not base32 of eight bytes"):
        bits.from_base32(text)
    if not text.isdigit():
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            pgsimhash.parse_simhash(text)


def test_bands_and_levels_of_similarity_have_names_and_distances() -> None:
    expected = {
        0: "duplicate",
        3: "duplicate",
        4: "near",
        8: "near",
        9: "different",
        64: "different",
    }
    assert {distance: bits.band(distance) for distance in expected} == expected
    for level, share in (("close", 0.98), ("loose", 0.9)):
        farthest = bits.LEVELS[level]
        assert 1 - farthest / 64 >= share > 1 - (farthest + 1) / 64


@pytest.mark.parametrize(("check", "values"), [
    (pgsimhash.parse_simhash, ["", "xyz", "0x1ffffffffffffffff", "18446744073709551616", "1.5"]),
    (bits.check_simhash, [-1, 2**64, True, 1.0, "1", None]),
    (bits.check_distance, [-1, 9, 3.0, "3", True, None]),
])  # fmt: skip
def test_an_invalid_simhash_or_distance_is_refused(check: Any, values: list[object]) -> None:
    for value in values:
        with pytest.raises(ArgumentError, check=because("invalid_argument")):
            check(value)


@given(simhashes, st.sets(st.integers(0, 63)))
def test_the_distance_counts_the_flipped_bits(simhash: int, flipped: set[int]) -> None:
    other = simhash ^ sum(1 << bit for bit in flipped)
    assert pgsimhash.hamming_distance(simhash, other) == len(flipped)


def test_the_distances_of_columns() -> None:
    numbers = [0, 1, 2**64 - 1]
    column = np.array(numbers, dtype=np.uint64)
    columns: list[Any] = [numbers, column, pd.Series(column), pl.Series(column), pa.array(column)]
    for one in columns:
        assert pgsimhash.hamming_distance(one, 1).tolist() == [1, 0, 63]
        assert pgsimhash.hamming_distance(1, one).tolist() == [1, 0, 63]
        for other in columns:
            assert pgsimhash.hamming_distance(one, other).tolist() == [0, 0, 0]
        with pytest.raises(ArgumentError, match="columns have 3 and 2 simhashes"):
            pgsimhash.hamming_distance(one, [1, 2])
    assert pgsimhash.hamming_distance(column[2], column[0]) == 64
