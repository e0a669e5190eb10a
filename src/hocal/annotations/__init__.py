"""Tables of any tool or engine to counts; how much people agree, and are they independent."""

from hocal.annotations.answers import SplitAnswers, split_answers
from hocal.annotations.cell_counting import cell_statistics
from hocal.annotations.counting import LabelCounts, count_labels
from hocal.annotations.exports import Annotations, read_annotations
from hocal.annotations.first_labels import first_labels
from hocal.annotations.independence import (
    Agreement,
    AnnotationCheck,
    agreement,
    check_annotations,
)

__all__ = [
    "Agreement",
    "AnnotationCheck",
    "Annotations",
    "LabelCounts",
    "SplitAnswers",
    "agreement",
    "cell_statistics",
    "check_annotations",
    "count_labels",
    "first_labels",
    "read_annotations",
    "split_answers",
]
