"""Worlds with known label distributions, for tests, demonstrations and simulations."""

from hocal.datasets._worlds import World, make_binary_regression, make_mixture_world, make_xray

__all__ = ["World", "make_binary_regression", "make_mixture_world", "make_xray"]
