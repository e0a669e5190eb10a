"""Agreement and independence: how much people agree, who stands out, what guarantees rest on."""

from hocal.annotations.independence.agreement_of_people import agreement
from hocal.annotations.independence.agreement_result import Agreement
from hocal.annotations.independence.annotation_check import AnnotationCheck
from hocal.annotations.independence.diagnostics import check_annotations

__all__ = ["Agreement", "AnnotationCheck", "agreement", "check_annotations"]
