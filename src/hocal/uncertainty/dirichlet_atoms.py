"""Atoms that stand for Dirichlet distributions, evenly spread."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from hocal._base.typing import Array

__all__ = ["dirichlet_atoms"]


def dirichlet_atoms(alpha: Array, n_atoms: int) -> Array:
    """Break a stick at Beta quantiles of Sobol points: p_j = v_j prod_{i<j} (1 - v_i).

    Parameters
    ----------
    alpha : array of shape (n_items, n_classes)
        Positive concentrations.
    n_atoms : int
        Atoms per item.

    Returns
    -------
    ndarray of shape (n_items, n_atoms, n_classes)
        Equally likely label distributions.
    """
    from scipy.stats import qmc  # costs a fifth of a second to import

    n_items, n_classes = alpha.shape
    sobol = qmc.Sobol(n_classes - 1, scramble=False)
    grid = sobol.random_base2(math.ceil(math.log2(n_atoms)))[:n_atoms]
    later = np.cumsum(alpha[:, ::-1], axis=1)[:, ::-1][:, 1:]  # what is left after each class
    levels = grid + 0.5 / n_atoms  # inside the cells of the grid, never 0
    shares = special.betaincinv(alpha[:, None, :-1], later[:, None], levels)
    left = np.cumprod(1 - shares, axis=-1)
    points = np.concatenate([shares, np.ones((n_items, n_atoms, 1))], axis=-1)
    points[..., 1:] *= left
    return points
