"""A figure, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the interval that covers the truth with the chance CONFIDENCE."""

    value: float
    low: float | None
    """None, and so is `high`: too little is known for an interval."""
    high: float | None

    def turned(self) -> Estimate:
        """The same of the figure with the other sign."""
        if self.low is None or self.high is None:
            return Estimate(0.0 - self.value, None, None)
        return Estimate(0.0 - self.value, 0.0 - self.high, 0.0 - self.low)

    def within(self, least: float, most: float) -> Estimate:
        """The same of a figure that cannot lie elsewhere."""
        if self.low is None or self.high is None:
            return self
        return Estimate(self.value, max(least, self.low), min(most, self.high))
