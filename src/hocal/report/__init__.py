"""Reports: what a model's uncertainty is made of, whether to trust the numbers, and where to act.

`summarise` computes one typed dict of plain values, `summarise_labels` one about labels alone;
`Report` renders either as a page that works from a file without a network, as Markdown or as JSON.
The page needs the extra ``app``, the rest does not.
"""

from hocal.report.label_schema import LabelSummary
from hocal.report.label_summary import summarise_labels
from hocal.report.report import Report
from hocal.report.schema import Summary
from hocal.report.summary import summarise

__all__ = ["LabelSummary", "Report", "Summary", "summarise", "summarise_labels"]
