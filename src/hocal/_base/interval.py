"""A number with its limits, in one form for the whole house."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Interval"]

ROUNDING = 1e-12  # of the range that limits are compared with


class Interval(NamedTuple):
    """An estimate with lower and upper limits.

    Attributes
    ----------
    estimate : float
        The best single value.
    lower, upper : float
        The limits, cut to the possible range.

    Examples
    --------
    >>> from hocal.guarantees import Interval
    >>> interval = Interval(0.3, 0.0, 1.0)
    >>> round(interval.width, 3), interval.covers(0, 1)
    (1.0, True)
    """

    estimate: float
    lower: float
    upper: float

    @property
    def width(self) -> float:
        """The distance between the limits."""
        return self.upper - self.lower

    def covers(self, low: float, high: float) -> bool:
        """Tell whether the limits hold all of a range, such as the possible one."""
        slack = ROUNDING * (high - low)
        return self.lower <= low + slack and self.upper >= high - slack

    def complement(self) -> Interval:
        """Return one less the interval, as the accuracy of an error rate."""
        return Interval(1 - self.estimate, 1 - self.upper, 1 - self.lower)

    def clip(self, low: float, high: float) -> Interval:
        """Return the interval with its limits cut to a range."""
        return Interval(self.estimate, max(self.lower, low), min(self.upper, high))
