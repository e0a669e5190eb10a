"""Independence diagnostics: check the assumptions about annotations that the guarantees rest on."""

from hocal.annotations.independence.annotation_check import AnnotationCheck
from hocal.annotations.independence.diagnostics import check_annotations

__all__ = ["AnnotationCheck", "check_annotations"]
