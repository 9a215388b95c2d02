"""Recall and false matches by distance, and which distance is recommended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgsimhash import Store
from pgsimhash.analysis import Evaluation, LabelledPair, Print, evaluate
from pgsimhash.analysis.labels import Label
from pgsimhash.errors import ArgumentError
from tests.refusals import because

STORY = (
    "The harbour master keeps a ledger of every boat, its cargo and its temper. On calm days she "
    "reads it aloud to the gulls, who correct her spelling; on stormy days nobody dares to ask "
    "which boats are missing, because the ledger answers before she does."
)
OTHER = (
    "Four looms stand in the mill above the river, and each of them has a name. Visitors hear the "
    "oldest one first: it sings when the water is high, and a weaver from the village tunes it "
    "every spring with oil, patience and a wooden hammer of her grandmother's."
)


def bits(count: int) -> int:
    return (1 << count) - 1


def evaluated(pairs: list[tuple[Label, int]], precision: float = 0.999) -> Evaluation:
    """Evaluate pairs at these distances, without signatures."""
    labelled = [LabelledPair("0", f"{i}", label) for i, (label, _) in enumerate(pairs, start=1)]
    prints: dict[str, Print | None] = {"0": Print(0)}
    prints |= {f"{i}": Print(bits(distance)) for i, (_, distance) in enumerate(pairs, start=1)}
    return evaluate(labelled, prints, precision=precision)


def test_recall_and_precision_are_of_the_pairs_within_the_distance() -> None:
    curve = evaluated(
        [("copy", 0), ("copy", 4), ("copy", 20), ("distinct", 4), ("distinct", 30)]
    ).curve
    assert [at.distance for at in curve] == list(range(17))
    assert curve[3].counts.recall == pytest.approx(1 / 3)
    assert curve[3].counts.precision == 1
    assert curve[4].counts == curve[4].unverified == (2, 3, 1, 2)
    assert curve[4].counts.recall == curve[4].counts.precision == pytest.approx(2 / 3)


def test_the_recommended_distance_is_the_one_that_ingest_can_use() -> None:
    """Different pages of one template are 6 bits apart; only their signatures tell them apart."""
    prints = {
        "original": Print(0, 0),
        "copy": Print(bits(8), bits(22)),
        "sibling": Print(bits(6) << 20, bits(60)),
    }
    pairs = [
        LabelledPair("original", "copy", "copy"),
        LabelledPair("original", "sibling", "distinct", "template"),
    ]
    evaluation = evaluate(pairs, prints)
    assert evaluation.best is not None
    assert evaluation.best.distance == 8
    assert evaluation.best.counts == (1, 1, 0, 1)
    assert evaluation.best.unverified == (1, 1, 1, 1)
    assert evaluation.best.kinds["template"] == (0, 0, 0, 1)
    # Without signatures, no distance is precise: the sibling is nearer than the copy.
    bare = {name: page._replace(signature=None) for name, page in prints.items()}
    assert evaluate(pairs, bare).best is None


RISING: list[tuple[Label, int]] = [("copy", 2), ("copy", 5), ("distinct", 9), ("copy", 12)]


@pytest.mark.parametrize(
    ("pairs", "precision", "best"),
    [
        (RISING, 0.999, 5),
        (RISING, 0.7, 12),
        ([("distinct", 0), *[("copy", 3)] * 9], 0.9, 3),  # precision may recover
        ([("distinct", 0), ("copy", 0)], 0.999, None),
        ([("distinct", 40)], 0.999, None),
    ],
)
def test_the_smallest_distance_of_the_largest_precise_recall_is_recommended(
    pairs: list[tuple[Label, int]], precision: float, best: int | None
) -> None:
    found = evaluated(pairs, precision).best
    assert (found and found.distance) == best


def test_pages_without_a_fingerprint_count_and_unread_ones_do_not() -> None:
    copy, other = LabelledPair("1", "2", "copy"), LabelledPair("1", "3", "distinct")
    graded = LabelledPair("1", "3", "graded")
    unread = evaluate([copy, graded], {"1": Print(7)})
    assert (unread.left_out, unread.graded) == (1, 1)
    assert unread.curve[-1].counts.recall is None
    short = evaluate([copy, other], {"1": Print(7), "2": None, "3": None})
    assert short.curve[-1].counts == (0, 1, 0, 1)


def test_too_few_matches_for_the_precision_are_reported() -> None:
    pairs: list[tuple[Label, int]] = [("copy", 1), ("copy", 6), ("distinct", 40)]
    assert "too few matches to tell a precision of 0.999" in evaluated(pairs).sentence
    assert "too few" not in evaluated(pairs, precision=0.5).sentence
    assert evaluated([("distinct", 0)]).sentence == (
        "At no distance is the precision 0.999 or better."
    )


@pytest.mark.parametrize("frame", ["dict", "pandas", "nullable", "polars"])
def test_texts_of_a_data_frame_are_evaluated(frame: str) -> None:
    columns = {
        "a": [STORY, STORY, "Two words", STORY],
        "b": [STORY.replace("calm", "quiet"), OTHER, OTHER, STORY],
        "label": ["duplicate", "different", "different", None],
    }
    source: Any = columns
    if frame == "nullable":
        source = pytest.importorskip("pandas").DataFrame(columns).convert_dtypes()
    elif frame != "dict":
        source = pytest.importorskip(frame).DataFrame(columns)
    evaluation = evaluate(source)
    assert evaluation.scheme == "pgsimhash-text-1"
    assert evaluation.too_short == ["Two words"]
    assert evaluation.curve[16].counts == (1, 1, 0, 2)
    with pytest.raises(ArgumentError, check=because("unknown_scheme")):
        evaluate(source, scheme="typo")


def test_pages_of_files_and_of_a_store_give_the_same_figures(store: Store, tmp_path: Path) -> None:
    names = {"one": STORY, "two": STORY.replace("calm", "quiet"), "three": OTHER}
    rows = ["a,b,label,kind", "one,two,duplicate,edit", "one,three,different,", "two,gone,graded,"]
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    for name, text in names.items():
        (tmp_path / f"{name}.html").write_text(f"<p>{text}")
        store.ingest(f"https://a.example/{name}", f"<p>{text}")
    of_files = evaluate(tmp_path / "pairs.csv")
    assert of_files.scheme == "pgsimhash-article-1"
    assert of_files.curve[16].kinds == {"": (0, 0, 0, 1), "edit": (1, 1, 0, 0)}
    assert evaluate(str(tmp_path / "pairs.csv"), tmp_path).curve == of_files.curve
    known = [
        LabelledPair("https://a.example/one", "https://a.example/two", "copy", "edit"),
        LabelledPair("https://a.example/one", "https://a.example/three", "distinct"),
        LabelledPair("https://a.example/one", "https://a.example/none", "distinct"),
    ]
    stored = evaluate(known, store)
    assert stored.curve == of_files.curve
    assert (stored.left_out, stored.failures[0].url) == (1, "https://a.example/none")
