"""Tables of judgements, of any tool or engine, to counts; and are judgements independent."""

from hocal.annotations.cell_counting import cell_statistics
from hocal.annotations.counting import LabelCounts, count_labels
from hocal.annotations.exports import Annotations, read_annotations
from hocal.annotations.independence import AnnotationCheck, check_annotations

__all__ = [
    "AnnotationCheck",
    "Annotations",
    "LabelCounts",
    "cell_statistics",
    "check_annotations",
    "count_labels",
    "read_annotations",
]
