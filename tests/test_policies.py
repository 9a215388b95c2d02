"""Which policy counts for a URL; no database."""

from __future__ import annotations

import fnmatch
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgsimhash.errors import ArgumentError
from pgsimhash.policies import Policies, Policy, Rules, Settings, merged
from pgsimhash.terms import Terms
from tests.refusals import because


def patterns(url: str, *policies: Policy) -> list[str]:
    return [policy.pattern for policy in Policies(policies).fitting(url)]


def test_a_host_stands_for_its_subdomains_and_the_nearest_comes_first() -> None:
    policies = [
        Policy(host="*"),
        Policy(host="example.com"),
        Policy(host="com"),
        Policy(host="shop.example.com"),
        Policy(host="ample.com"),
    ]
    assert patterns("https://shop.EXAMPLE.com:8080/a", *policies) == [
        "shop.example.com",
        "example.com",
        "com",
        "*",
    ]
    assert patterns("https://other.example/", *policies) == ["*"]
    assert patterns("file:///srv/page.html", *policies) == ["*"]


def test_a_longer_path_comes_first_and_the_host_counts_more() -> None:
    policies = [
        Policy(host="*", path="/very/long/path/*"),
        Policy(host="a.example"),
        Policy(host="a.example", path="/very/*"),
        Policy(host="a.example", path="/very/long/*"),
    ]
    assert patterns("https://a.example/very/long/path/1", *policies) == [
        "a.example/very/long/*",
        "a.example/very/*",
        "a.example",
        "*/very/long/path/*",
    ]


@pytest.mark.parametrize(
    ("path", "url", "fits"),
    [
        ("/", "https://a.example", True),
        ("/", "https://a.example/", True),
        ("/", "https://a.example/b", False),
        ("/*", "https://a.example?q=1", True),
        ("/?q=1", "https://a.example?q=1", True),
        ("/*/print", "https://a.example/news/1/print", True),
        ("/*/print", "https://a.example/print", False),
        ("/*.html*", "https://a.example/1.html?from=rss", True),
        ("/a*a", "https://a.example/a", False),
        ("/100%_off", "https://a.example/100%_off", True),
        ("/100%_off", "https://a.example/100-1off", False),
        ("/[ab]", "https://a.example/a", False),
    ],
)
def test_a_star_in_a_path_stands_for_anything(path: str, url: str, fits: bool) -> None:
    assert bool(patterns(url, Policy(host="a.example", path=path))) == fits


@given(
    st.text("ab*/", max_size=12).map(lambda text: f"/{text}"),
    st.text("ab/", max_size=20).map(lambda text: f"/{text}"),
)
def test_paths_fit_as_file_names_would(pattern: str, path: str) -> None:
    fits = Policy(host="a.example", path=pattern).fits_path(path)
    assert fits == fnmatch.fnmatchcase(path, pattern)


def test_each_setting_is_decided_by_the_most_specific_policy_that_has_it() -> None:
    fitting = [Settings(distance=3), Settings(distance=5, scope="host"), Settings(min_words=50)]
    assert merged(fitting) == Settings(distance=3, scope="host", min_words=50)
    assert merged([Settings(verify=False), Settings(verify=True)]).verify is False
    assert merged([]) == Settings()


def test_what_the_caller_asks_for_counts_before_policies_and_the_collection_last() -> None:
    policies = Policies([Policy(host="a.example", distance=5, keep_first=2)])
    rules = Rules(policies, {"keep_first": 7, "newest": None}, 8)
    assert rules.terms_for("https://a.example/") == Terms(5, keep_first=7)
    assert rules.terms_for("https://b.example/") == Terms(8, keep_first=7)


def test_what_a_caller_cannot_ask_for_is_refused_at_once() -> None:
    with pytest.raises(ArgumentError, match="a scope is one of"):
        Rules(Policies(), {"scope": "planet"}, 8)  # type: ignore[typeddict-item]
    with pytest.raises(ArgumentError, match="keep_first is a number, 1 or more, not 0"):
        Rules(Policies(), {"keep_first": 0}, 8)
    with pytest.raises(ArgumentError, match="newest is a number, 1 or more, not '5'"):
        Rules(Policies(), {"newest": "5"}, 8)  # type: ignore[typeddict-item]
    with pytest.raises(ArgumentError, match="newest is at most 2,147,483,647, not"):
        Rules(Policies(), {"newest": 2**31}, 8)
    with pytest.raises(ArgumentError, match="min_words"):
        Rules(Policies(), {"min_words": -1}, 8)
    with pytest.raises(ArgumentError, check=because("invalid_age")):
        Rules(Policies(), {"max_age": timedelta(0)}, 8)


def test_a_policy_is_json_without_what_it_does_not_say() -> None:
    policy = Policy(host="a.example", path="/x/*", distance=3, expire_after=timedelta(days=1))
    assert policy.as_json() == {"pattern": "a.example/x/*", "distance": 3, "expire_after": 86400.0}


def test_an_option_that_is_misspelt_is_named_beside_those_there_are() -> None:
    with pytest.raises(TypeError, match=r"no option 'distanse'; there are: distance, verify, .*"):
        Rules(Policies(), {"distanse": 3}, 8)  # type: ignore[typeddict-unknown-key]
