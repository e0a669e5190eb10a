"""Recalibrate predictions class by class: the mean of everything that follows."""
