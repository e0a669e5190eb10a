"""Risk against coverage of one or more scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal.decisions.selective import RiskCoverage, risk_coverage
from hocal.plot.canvas import STYLES, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["RiskCoverageDisplay"]


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(Display):
    """Mean loss for each share of the items that is answered, a curve for each score.

    Parameters
    ----------
    curves : dict of str to RiskCoverage
        Curves by the name of their score.
    handed_on : bool, default=False
        Whether items that are not answered count with a loss of their own.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The curves; only after `plot`.

    Examples
    --------
    >>> from hocal.plot import RiskCoverageDisplay
    >>> display = RiskCoverageDisplay.from_scores({"entropy": [0.1, 0.7, 0.3]}, [0, 1, 0])
    >>> display.plot().ax_.get_xlabel()
    'share of the items that is answered'
    """

    curves: dict[str, RiskCoverage]
    handed_on: bool = False

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        losses: ArrayLike,
        *,
        otherwise: ArrayLike | None = None,
    ) -> Self:
        """Compute the curves of some scores for the same losses.

        Parameters
        ----------
        scores : mapping of str to array-like of shape (n_items,)
            Scores by name, at most as many as there are line styles (8).
        losses, otherwise
            As in `hocal.decisions.risk_coverage`.
        """
        if not isinstance(scores, Mapping) or not 0 < len(scores) <= len(STYLES):
            rule = f"must be a mapping of one to {len(STYLES)} names to scores"
            found = len(scores) if isinstance(scores, Mapping) else type(scores).__name__
            raise InputError("scores", rule, value=found)
        curves = {
            str(name): risk_coverage(values, losses, otherwise=otherwise)
            for name, values in scores.items()
        }
        return cls(curves, otherwise is not None)

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Self:
        """Draw the curves; the legend says their areas.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title of the axes.

        Returns
        -------
        RiskCoverageDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._start(ax, height=4.2)
        self.lines_: dict[str, Line2D] = {
            name: self._draw(ax, name, place) for place, name in enumerate(self.curves)
        }
        of = "all items" if self.handed_on else "these items"
        ax.set(xlabel="share of the items that is answered", ylabel=f"mean loss of {of}")
        self._finish(ax, title)
        return self

    def _draw(self, ax: Axes, name: str, place: int) -> Line2D:
        """Draw one curve."""
        curve = self.curves[name]
        style = STYLES[place]
        label = f"{name}, area {curve.area.estimate:.3g}"
        return ax.plot(
            curve.coverage, curve.risk, color=style.colour, ls=style.line, lw=1.5, label=label
        )[0]
