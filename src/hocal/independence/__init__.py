"""Independence diagnostics: check the assumptions about annotations that the guarantees rest on."""

from hocal.independence._annotation_check import AnnotationCheck
from hocal.independence._diagnostics import check_annotations

__all__ = ["AnnotationCheck", "check_annotations"]
