"""How well a scheme tells copies from other pages: labels in, curves and pictures out."""

from pgsimhash.evaluation.labels import LabelledPair, Labels, read_labels
from pgsimhash.evaluation.measures import AtDistance, Measured, Score, measure, recommend
from pgsimhash.evaluation.sample import NearSample, Unlabelled, sample_near_pairs

__all__ = [
    "AtDistance",
    "LabelledPair",
    "Labels",
    "Measured",
    "NearSample",
    "Score",
    "Unlabelled",
    "measure",
    "read_labels",
    "recommend",
    "sample_near_pairs",
]
