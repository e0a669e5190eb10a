"""Split uncertainty into aleatoric and epistemic parts, and losses by what can be avoided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.notebook import bar, table, wrap_text
from hocal._base.typing import Array
from hocal._base.validation import check_choice, check_integer
from hocal.uncertainty.entropy import Entropy, Separable, get_entropy
from hocal.uncertainty.mixtures import Mixtures, check_mixtures
from hocal.uncertainty.snapshots import log_choose

if TYPE_CHECKING:
    from torch import Tensor

    from hocal.torch import TensorDecomposition

__all__ = ["Decomposition", "check_panel_size", "decompose"]

Kind = Literal["mutual-information", "reverse", "total"]
KINDS: tuple[Kind, ...] = ("mutual-information", "reverse", "total")
_MAX_BLOCK = 1 << 20  # numbers of an item that are worked on at once
MAX_PANEL = 10_000  # annotators: uncertainty then is within 5e-5 nats per class of everybody's
_LARGE_PANEL = "For more annotators leave it out: they are as good as everybody."
_PANEL_NUMBERS = 1 << 20  # of votes by probabilities that are worked on at once, 8 MB
_MAX_SINGLE = 1000  # members whose mean is taken in float32; over more, it would lose digits


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition:
    """Uncertainty of each item in two parts, ``predictive = aleatoric + epistemic``.

    Attributes
    ----------
    predictive : ndarray of shape (n_items,)
        All of the uncertainty.
    aleatoric : ndarray of shape (n_items,)
        Disagreement that stays however good the model becomes.
    epistemic : ndarray of shape (n_items,)
        What the model does not know.
    entropy : Entropy
        The measure of uncertainty.
    kind : str
        How the epistemic part is defined.

    Examples
    --------
    >>> import hocal
    >>> hocal.decompose(hocal.Mixtures.from_points([[0.5, 0.5]]), base=2)
    Decomposition(1 item, mean predictive 1 = aleatoric 1 + epistemic 0,
        Shannon(base=2), mutual-information)
    """

    predictive: Array
    aleatoric: Array
    epistemic: Array
    entropy: Entropy
    kind: Kind

    def __len__(self) -> int:
        return len(self.predictive)

    def __repr__(self) -> str:
        means = {
            name: f"{np.mean(values):.4g}" if len(self) else "nan"
            for name, values in self.as_dict().items()
        }
        size = f"{len(self)} {self._noun()}"
        whole = f"mean predictive {means['predictive']}"
        parts = f"aleatoric {means['aleatoric']} + epistemic {means['epistemic']}"
        return wrap_text(f"Decomposition({size}, {whole} = {parts}, {self.entropy}, {self.kind})")

    def _repr_html_(self) -> str:
        caption = f"Decomposition of {len(self):,} {self._noun()}, {self.entropy}, {self.kind}"
        if not len(self):
            return table(caption, [], [])
        heads = ["mean", "10%", "median", "90%", "max"]
        rows = [(name, *_summary(part)) for name, part in self.as_dict().items()]
        parts = bar(float(self.aleatoric.mean()), float(self.epistemic.mean()))
        return table(caption, heads, rows, before=parts)

    def _noun(self) -> str:
        return "item" if len(self) == 1 else "items"

    def as_dict(self) -> dict[str, Array]:
        """Return the three parts by name."""
        return {
            "predictive": self.predictive,
            "aleatoric": self.aleatoric,
            "epistemic": self.epistemic,
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a dataframe with one row per item.

        `backend` is "pandas", "polars" or "pyarrow".
        """
        return to_frame(self.as_dict(), backend)


@overload
def decompose(
    mixtures: Mixtures | NDArray[Any],
    entropy: str | Entropy = ...,
    *,
    base: float | None = ...,
    kind: Kind = ...,
    panel_size: int | None = ...,
) -> Decomposition: ...


@overload
def decompose(
    mixtures: Tensor,
    entropy: str | Entropy = ...,
    *,
    base: float | None = ...,
    kind: Kind = ...,
    panel_size: None = ...,
) -> TensorDecomposition: ...


def decompose(
    mixtures: Any,
    entropy: str | Entropy = "shannon",
    *,
    base: float | None = None,
    kind: Kind = "mutual-information",
    panel_size: int | None = None,
) -> Any:
    """Split the uncertainty of mixtures into an aleatoric and an epistemic part.

    With p drawn from an item's mixture and m its mean, the aleatoric part is E G(p). The epistemic
    part is E D(p||m) = G(m) - E G(p) for "mutual-information", E D(m||p) for "reverse" and their
    sum, which is E D(p||p') for two independent draws, for "total". The last two are
    infinite for Shannon entropy when an atom excludes a label that the mean allows, as snapshot
    mixtures usually do.

    The number can be trusted as far as the mixture can: for a calibrated mixture the aleatoric part
    is the mean entropy of the true label distributions of its cell.

    Parameters
    ----------
    mixtures : Mixtures, ndarray or torch.Tensor
        Distributions over label distributions. An array or tensor (n_items, n_members, n_classes)
        holds the members of an ensemble, each equally likely; the parts of a tensor come back as
        tensors on its device.
    entropy : str or Entropy, default="shannon"
        Measure of uncertainty, in nats unless `base` says otherwise.
    base : float, optional
        Base of Shannon's logarithm, 2 for bits.
    kind : {"mutual-information", "reverse", "total"}
        Definition of the epistemic part.
    panel_size : int, optional
        Report as aleatoric what a panel of this many annotators shows, the expected entropy of its
        histogram, which lies below the entropy of the label distribution. The panel's
        shortfall is then counted as epistemic; only for ``kind="mutual-information"``.

    Returns
    -------
    Decomposition
        Arrays of n_items. A difference below zero by rounding is returned as 0.

    Examples
    --------
    >>> import hocal
    >>> parts = hocal.decompose(hocal.Mixtures.from_vertices([[0.5, 0.5]]), base=2)
    >>> float(parts.aleatoric[0]), float(parts.epistemic[0])
    (0.0, 1.0)
    """
    if type(mixtures).__module__.partition(".")[0] == "torch":
        return _decompose_tensor(mixtures, entropy, base, kind, panel_size)
    if isinstance(mixtures, np.ndarray) and mixtures.ndim == 3:
        members = mixtures.view()
        members.flags.writeable = False  # nobody changes them meanwhile, so they need not be copied
        mixtures = Mixtures.from_ensemble(members)
    check_mixtures(mixtures)
    check_choice(kind, "kind", KINDS)
    measure = get_entropy(entropy, base=base)
    panel = None if panel_size is None else _panel_value(measure, panel_size, kind)
    stored = mixtures.stored()  # work once for each distinct mixture, then hand out to items
    predictive, aleatoric = _split(stored, measure)
    if panel is not None:
        aleatoric = stored.expect(panel)
    epistemic = np.maximum(predictive - aleatoric, 0)  # Jensen: negative only by rounding
    if kind != "mutual-information":
        reverse = np.maximum(_reverse_loss(stored, measure) - predictive, 0)
        epistemic = reverse if kind == "reverse" else epistemic + reverse
        predictive = aleatoric + epistemic
    items = mixtures.index
    return Decomposition(predictive[items], aleatoric[items], epistemic[items], measure, kind)


def _summary(part: Array) -> list[str]:
    """Return mean, three quantiles and maximum as text."""
    numbers = (part.mean(), *np.quantile(part, [0.1, 0.5, 0.9]), part.max())
    return [f"{number:.4g}" for number in numbers]


def _decompose_tensor(
    members: Any, entropy: str | Entropy, base: float | None, kind: Kind, panel_size: int | None
) -> Any:
    """Hand a tensor to the code that stays on its device; whoever has a tensor has torch."""
    from hocal.torch import decompose_members

    if panel_size is not None:
        raise InputError(
            "panel_size",
            "must be left out for a tensor",
            remedy="Use Mixtures.from_ensemble(tensor.numpy()).",
        )
    return decompose_members(members, entropy, base=base, kind=kind)


def _split(stored: Mixtures, measure: Entropy) -> tuple[Array, Array]:
    """Return G(E p) and E G(p) of each stored mixture, in one pass over members of an ensemble."""
    value = partial(measure.value, check_input=False)
    if not 0 < stored.n_members * stored.n_classes <= _MAX_BLOCK:
        return value(stored.mean()), stored.expect(value)
    predictive = np.empty(stored.n_mixtures)
    aleatoric = np.empty(stored.n_mixtures)
    many = stored.n_members > _MAX_SINGLE
    exact = many or not isinstance(measure, Separable)
    for block, weights, members in stored.member_blocks():
        points = members.astype(np.float64 if exact else members.dtype, copy=False)
        values = value(points.reshape(-1, stored.n_classes)).reshape(weights.shape)
        aleatoric[block] = np.einsum("ma,ma->m", weights, values)
        mean = (weights[:, None].astype(points.dtype) @ points)[:, 0]
        predictive[block] = value(mean.astype(np.float64, copy=False))
    return predictive, aleatoric


def check_panel_size(panel_size: Any) -> int:
    """Return a number of annotators for whom uncertainty can be computed."""
    return check_integer(panel_size, "panel_size", minimum=1, maximum=MAX_PANEL, why=_LARGE_PANEL)


def _panel_value(measure: Entropy, panel_size: int, kind: Kind) -> Callable[[Array], Array]:
    """Return E G(s / n) for n labels drawn from p: g becomes its Bernstein polynomial."""
    size = check_panel_size(panel_size)
    if kind != "mutual-information":
        rule = "must be left out unless kind='mutual-information'"
        raise InputError("panel_size", rule, value=f"kind={kind!r}")
    if not isinstance(measure, Separable):
        rule = f"must be left out with {measure}, which is not a sum over classes"
        raise InputError("panel_size", rule)
    votes = np.arange(size + 1)
    values = measure.component(votes / size)
    log_ways = log_choose(np.array(size), votes)

    def by_class(x: Array) -> Array:
        x = np.minimum(x, 1)[:, None]  # rounding may leave a certain class a little above 1
        logs = log_ways + special.xlogy(votes, x) + special.xlog1py(size - votes, -x)
        return np.asarray(np.exp(logs) @ values)

    def value(p: Array) -> Array:
        flat = p.reshape(-1)
        step = max(_PANEL_NUMBERS // (size + 1), 1)
        parts = [by_class(flat[start : start + step]) for start in range(0, len(flat), step)]
        return np.asarray(np.concatenate(parts).reshape(p.shape).sum(axis=-1))

    return value


def _reverse_loss(stored: Mixtures, measure: Entropy) -> Array:
    """Return E L(mean||p) for each stored mixture, with its mean repeated at every atom."""
    means = stored.mean()
    losses = np.empty(len(stored.weights))
    for block in stored.blocks(stored.index):
        mixture, atom, _ = stored.pairs(stored.index[block])
        losses[atom] = measure.loss(
            means[block][mixture], stored.points_at(atom), check_input=False
        )
    losses[stored.weights == 0] = 0  # without mass an atom has no say, even at an infinite loss
    return stored.average(losses)
