"""Aleatoric and epistemic uncertainty, and the causes of a loss."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import reference
from hocal import (
    Decomposition,
    InputError,
    LossDecomposition,
    Mixtures,
    decompose,
    decompose_loss,
)
from hocal._base.typing import Array, IntArray
from hocal.uncertainty.entropy import Brier, Custom, Entropy, Shannon, Spherical, Tsallis, ZeroOne
from strategies import count_matrices, label_distributions, mixtures, seeds

ENTROPIES: list[Entropy] = [Shannon(), Brier(), Tsallis(0.5), ZeroOne(), Spherical()]
KINDS: list[Any] = ["mutual-information", "reverse", "total"]
each_entropy = pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
each_kind = pytest.mark.parametrize("kind", KINDS)


def divergence_of(entropy: Entropy) -> Callable[[Any, Any], float]:
    """Return the divergence of single label distributions for the loops of the reference."""
    return lambda q, p: float(entropy.divergence(q, p, check_input=False))


# Closed forms


def test_uniform_beta_has_half_a_nat_of_aleatoric_uncertainty() -> None:
    """E[H(p)] for p ~ Beta(1, 1) is digamma(3) - digamma(2) = 1/2."""
    p = (np.arange(20_000) + 0.5) / 20_000
    parts = decompose(Mixtures.from_ensemble(np.stack([p, 1 - p], axis=-1)[None]))

    assert parts.aleatoric[0] == pytest.approx(0.5, abs=1e-6)


def test_uniform_beta_has_brier_parts_of_a_third_and_a_sixth() -> None:
    """E[2p(1 - p)] = 1/3 and 2 Var(p) = 1/6."""
    p = (np.arange(20_000) + 0.5) / 20_000
    parts = decompose(Mixtures.from_ensemble(np.stack([p, 1 - p], axis=-1)[None]), "brier")

    assert (parts.aleatoric[0], parts.epistemic[0]) == pytest.approx((1 / 3, 1 / 6), abs=1e-6)


def test_uniform_beta_has_half_a_nat_of_reverse_information() -> None:
    """E[-log p] = 1, so the expected cross-entropy of a fair coin is 1 and RMI = 1 - log 2."""
    p = (np.arange(200_000) + 0.5) / 200_000
    parts = decompose(Mixtures.from_ensemble(np.stack([p, 1 - p], axis=-1)[None]), kind="reverse")

    assert parts.epistemic[0] == pytest.approx(1 - math.log(2), abs=1e-5)


def test_dirichlet_mutual_information_is_the_closed_form() -> None:
    alpha = np.array([2.0, 1.0, 4.0])
    share = alpha / alpha.sum()
    aleatoric = special.digamma(alpha.sum() + 1) - share @ special.digamma(alpha + 1)
    parts = decompose(Mixtures.from_dirichlet(alpha[None], n_atoms=8192))

    assert parts.epistemic[0] == pytest.approx(reference.shannon(share) - aleatoric, abs=1e-3)


@given(p=label_distributions(3, shape=(2,)))
def test_a_point_mass_is_all_aleatoric(p: Array) -> None:
    """Erratum E11: the naive decomposition has AU = H(f) and EU = 0."""
    parts = decompose(Mixtures.from_points(p))

    np.testing.assert_allclose(parts.aleatoric, [reference.shannon(row) for row in p], atol=1e-12)
    np.testing.assert_allclose(parts.epistemic, 0, atol=1e-12)


@given(p=label_distributions(3, shape=(2,)))
def test_a_vertex_mixture_is_all_epistemic(p: Array) -> None:
    """Erratum E11: the 1-snapshot predictor has AU = 0, unlike the naive one."""
    parts = decompose(Mixtures.from_vertices(p))

    np.testing.assert_allclose(parts.aleatoric, 0, atol=1e-12)
    np.testing.assert_allclose(parts.epistemic, [reference.shannon(row) for row in p], atol=1e-12)


@given(counts=count_matrices())
def test_single_labels_show_no_aleatoric_uncertainty(counts: IntArray) -> None:
    """Erratum E2: with k = 1 every snapshot has entropy 0, whatever the cell."""
    single = np.eye(counts.shape[1], dtype=int)[counts.argmax(axis=1)]

    assert (decompose(Mixtures.from_snapshots(single)).aleatoric == 0).all()


def test_two_labels_per_scan_tell_the_worlds_apart() -> None:
    """The X-ray example: the same 50% prediction, all ambiguous, or half yes and half no."""
    worlds = Mixtures([[0.5, 0.5], [1, 0], [0, 1]], [1, 0.5, 0.5], offsets=[0, 1, 3], index=[0, 1])
    parts = decompose(worlds.project(2), "brier")

    assert parts.predictive.tolist() == [0.5, 0.5]
    assert parts.aleatoric.tolist() == [0.25, 0]


# Against double loops


@each_entropy
@given(m=mixtures())
def test_the_epistemic_part_is_the_mean_divergence_from_the_mean(
    entropy: Entropy, m: Mixtures
) -> None:
    expected = [
        reference.mutual_information(reference.atoms_of(m, i), divergence_of(entropy))
        for i in range(len(m))
    ]

    np.testing.assert_allclose(decompose(m, entropy).epistemic, expected, atol=1e-10)


def assert_epistemic(
    m: Mixtures, entropy: Entropy, kind: Literal["reverse", "total"], slowly: Callable[..., float]
) -> None:
    divergence = divergence_of(entropy)
    slow = [slowly(reference.atoms_of(m, i), divergence) for i in range(len(m))]

    np.testing.assert_allclose(decompose(m, entropy, kind=kind).epistemic, slow, atol=1e-10)


@each_entropy
@given(m=mixtures())
def test_the_reverse_part_is_the_mean_divergence_of_the_mean(entropy: Entropy, m: Mixtures) -> None:
    """Infinite parts included: an atom may exclude what the mean allows."""
    assert_epistemic(m, entropy, "reverse", reference.reverse_mutual_information)


@each_entropy
@given(m=mixtures())
def test_the_total_part_is_the_mean_divergence_of_two_draws(entropy: Entropy, m: Mixtures) -> None:
    assert_epistemic(m, entropy, "total", reference.total_mutual_information)


@given(m=mixtures())
def test_the_shannon_parts_equal_those_of_a_written_out_divergence(m: Mixtures) -> None:
    slow = [
        reference.total_mutual_information(reference.atoms_of(m, i), reference.kullback_leibler)
        for i in range(len(m))
    ]

    np.testing.assert_allclose(decompose(m, kind="total").epistemic, slow, atol=1e-10)


@given(m=mixtures())
def test_the_brier_parts_equal_those_of_a_written_out_distance(m: Mixtures) -> None:
    slow = [
        reference.mutual_information(reference.atoms_of(m, i), reference.squared_distance)
        for i in range(len(m))
    ]

    np.testing.assert_allclose(decompose(m, "brier").epistemic, slow, atol=1e-12)


def test_a_custom_entropy_without_gradient_decomposes_like_its_twin() -> None:
    m = Mixtures.from_ensemble(np.random.default_rng(0).dirichlet(np.ones(3), (5, 4)))
    custom = Custom(lambda p: 1 - np.square(p).sum(axis=-1))

    np.testing.assert_allclose(
        decompose(m, custom, kind="total").epistemic,
        decompose(m, "brier", kind="total").epistemic,
        atol=1e-7,
    )


# Properties


@each_kind
@each_entropy
@given(m=mixtures())
def test_the_parts_add_up(entropy: Entropy, kind: Any, m: Mixtures) -> None:
    parts = decompose(m, entropy, kind=kind)

    np.testing.assert_allclose(parts.aleatoric + parts.epistemic, parts.predictive, atol=1e-12)


@each_kind
@each_entropy
@given(m=mixtures())
def test_the_epistemic_part_is_not_negative(entropy: Entropy, kind: Any, m: Mixtures) -> None:
    assert (decompose(m, entropy, kind=kind).epistemic >= 0).all()


@each_entropy
@given(m=mixtures())
def test_total_information_is_mutual_plus_reverse(entropy: Entropy, m: Mixtures) -> None:
    forward, reverse, total = (decompose(m, entropy, kind=kind).epistemic for kind in KINDS)

    np.testing.assert_allclose(total, forward + reverse, atol=1e-12)


@each_entropy
@given(m=mixtures())
def test_the_predictive_part_is_the_entropy_of_the_mean(entropy: Entropy, m: Mixtures) -> None:
    np.testing.assert_allclose(
        decompose(m, entropy).predictive, entropy.value(m.mean()), atol=1e-12
    )


@each_kind
@given(m=mixtures(3), seed=seeds)
def test_relabelling_classes_does_not_change_a_part(kind: Any, m: Mixtures, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(3)
    relabelled = Mixtures(m.points[:, order], m.weights, m.offsets, m.index)

    np.testing.assert_allclose(
        decompose(relabelled, kind=kind).epistemic, decompose(m, kind=kind).epistemic, atol=1e-12
    )


@each_kind
@given(m=mixtures(), seed=seeds)
def test_picking_items_commutes_with_decomposing(kind: Any, m: Mixtures, seed: int) -> None:
    items = np.random.default_rng(seed).integers(0, len(m), 4)

    np.testing.assert_array_equal(
        decompose(m[items], kind=kind).epistemic, decompose(m, kind=kind).epistemic[items]
    )


@given(m=mixtures(), k=st.integers(1, 4))
def test_fewer_labels_never_show_more_aleatoric_uncertainty(m: Mixtures, k: int) -> None:
    """Thinning averages, and entropy is concave: the plug-in is biased downwards for every k."""
    assert (
        decompose(m.project(k)).aleatoric <= decompose(m.project(k + 1)).aleatoric + 1e-12
    ).all()


def test_bits_are_nats_over_log_two() -> None:
    m = Mixtures.from_ensemble(np.random.default_rng(0).dirichlet(np.ones(3), (5, 4)))

    np.testing.assert_allclose(
        decompose(m, base=2).epistemic, decompose(m).epistemic / math.log(2), atol=1e-14
    )


def test_decomposing_leaves_the_mixtures_alone() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), (5, 4))
    before = p.copy()
    decompose(Mixtures.from_ensemble(p), kind="total")

    assert np.array_equal(p, before)


def test_many_atoms_are_decomposed_like_few() -> None:
    """More atoms than a block of work, against the plain expression."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), (50, 1000))
    plain = special.entr(p.mean(axis=1)).sum(axis=-1) - special.entr(p).sum(axis=-1).mean(axis=1)

    np.testing.assert_allclose(decompose(Mixtures.from_ensemble(p)).epistemic, plain, atol=1e-12)


# Ensembles in float32


@pytest.mark.parametrize(
    "shape", [(200, 5, 10), (50, 30, 100), (20, 5, 1000), (10, 800, 10), (3, 20_000, 2)], ids=str
)
def test_a_float32_ensemble_has_the_parts_of_a_float64_one_to_1e_6(
    shape: tuple[int, int, int],
) -> None:
    p = np.random.default_rng(0).dirichlet(np.full(shape[2], 0.3), shape[:2]).astype(np.float32)
    single, double = (
        decompose(Mixtures.from_ensemble(x)).as_dict() for x in (p, p.astype(np.float64))
    )

    for name, part in double.items():
        np.testing.assert_allclose(single[name], part, rtol=0, atol=1e-6, err_msg=name)


@each_kind
@each_entropy
def test_every_entropy_takes_float32(entropy: Entropy, kind: Any) -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), (20, 4)).astype(np.float32)
    single, double = (
        decompose(Mixtures.from_ensemble(x), entropy, kind=kind) for x in (p, p.astype(np.float64))
    )

    np.testing.assert_allclose(single.epistemic, double.epistemic, rtol=0, atol=1e-6)


def test_certain_members_in_float32_have_no_uncertainty() -> None:
    parts = decompose(Mixtures.from_ensemble(np.eye(3, dtype=np.float32)[:, None]))

    assert [part.tolist() for part in parts.as_dict().values()] == [[0, 0, 0]] * 3


@pytest.mark.parametrize(
    ("dtype", "writeable", "copies"), [("f4", True, 1), ("f8", True, 1), ("f8", False, 0)]
)
def test_an_ensemble_is_copied_at_most_once(dtype: str, writeable: bool, copies: int) -> None:
    """Where its owner could change it later."""
    p = np.full((20_000, 10, 20), 0.05, dtype=dtype)
    p.flags.writeable = writeable
    tracemalloc.start()
    decompose(Mixtures.from_ensemble(p))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < (copies + 0.2) * p.nbytes


# A panel of annotators


@pytest.mark.parametrize("entropy", [Shannon(base=2), Brier(), Tsallis(0.5)], ids=str)
@given(m=mixtures(), panel_size=st.integers(1, 5))
def test_a_panel_shows_the_aleatoric_part_of_the_projection(
    entropy: Entropy, m: Mixtures, panel_size: int
) -> None:
    panel = decompose(m, entropy, panel_size=panel_size)

    np.testing.assert_allclose(
        panel.aleatoric, decompose(m.project(panel_size), entropy).aleatoric, atol=1e-12
    )


def test_a_panel_shows_the_brier_entropy_less_its_share_of_pairs() -> None:
    """Two of n labels are the same one with chance 1 / n, so E[1 - ||s/n||^2] = (1 - 1/n) G(p)."""
    m = Mixtures.from_points([[0.2, 0.3, 0.5]])
    panel, whole = decompose(m, "brier", panel_size=50), decompose(m, "brier")

    assert panel.aleatoric[0] == pytest.approx(0.98 * whole.aleatoric[0], abs=1e-12)


def test_the_parts_of_a_panel_add_up() -> None:
    parts = decompose(Mixtures.from_dirichlet([[1, 2, 3]]), panel_size=7)

    np.testing.assert_allclose(parts.aleatoric + parts.epistemic, parts.predictive, atol=1e-12)


def test_a_panel_of_a_certain_label_is_certain_when_its_probability_strays_above_one() -> None:
    """A sum of 1 + 5e-6 passes for a label distribution, as in float32 predictions."""
    parts = decompose(Mixtures.from_points([[1 + 5e-6, 0]]), panel_size=5)

    assert parts.aleatoric[0] == pytest.approx(0, abs=1e-4)


def test_a_panel_needs_a_separable_entropy() -> None:
    with pytest.raises(
        ValueError, match=r"`panel_size` must be left out with Spherical\(\), which is not a sum"
    ):
        decompose(Mixtures.from_points([[0.5, 0.5]]), "spherical", panel_size=3)


@pytest.mark.parametrize("kind", ["reverse", "total"])
def test_a_panel_has_mutual_information_only(kind: Any) -> None:
    with pytest.raises(
        ValueError, match=f"`panel_size` must be left out unless .* got kind='{kind}'"
    ):
        decompose(Mixtures.from_points([[0.5, 0.5]]), kind=kind, panel_size=3)


@pytest.mark.parametrize("panel_size", [0, 2.0, True, "all"])
def test_a_panel_has_at_least_one_annotator(panel_size: Any) -> None:
    with pytest.raises(
        ValueError, match=f"`panel_size` must be an integer from 1 to 10000, got {panel_size!r}"
    ):
        decompose(Mixtures.from_points([[0.5, 0.5]]), panel_size=panel_size)


# Infinities and empty cells


@pytest.mark.parametrize("kind", ["reverse", "total"])
def test_snapshot_mixtures_have_infinite_shannon_information_backwards(kind: Any) -> None:
    m = Mixtures.from_snapshots([[2, 0], [1, 1]])

    assert decompose(m, kind=kind).epistemic.tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("kind", ["reverse", "total"])
def test_snapshot_mixtures_have_finite_brier_information_backwards(kind: Any) -> None:
    m = Mixtures.from_snapshots([[2, 0], [1, 1]])

    assert np.isfinite(decompose(m, "brier", kind=kind).epistemic).all()


@each_kind
def test_an_atom_without_weight_has_no_say(kind: Any) -> None:
    """Its loss is infinite, and zero times infinity must not spoil the mean."""
    m = Mixtures([[0.5, 0.5], [1, 0]], [1, 0], offsets=[0, 2], index=[0])

    assert decompose(m, kind=kind).epistemic[0] == pytest.approx(0, abs=1e-12)


@each_kind
@each_entropy
def test_an_empty_cell_gives_nan_in_every_part(entropy: Entropy, kind: Any) -> None:
    m = Mixtures([[0.5, 0.5]], [1.0], offsets=[0, 0, 1], index=[0, 1])
    parts = decompose(m, entropy, kind=kind)

    assert [np.isnan(part).tolist() for part in parts.as_dict().values()] == [[True, False]] * 3


# The result


def test_a_decomposition_is_frozen() -> None:
    parts = decompose(Mixtures.from_points([[0.5, 0.5]]))

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'aleatoric'"):
        parts.aleatoric = np.zeros(1)  # type: ignore[misc]


def test_a_decomposition_has_a_length() -> None:
    assert len(decompose(Mixtures.from_points([[0.5, 0.5]] * 3))) == 3


def test_a_decomposition_remembers_how_it_was_made() -> None:
    parts = decompose(Mixtures.from_points([[0.5, 0.5]]), "brier", kind="reverse")

    assert (parts.entropy, parts.kind) == (Brier(), "reverse")


def test_a_decomposition_prints_its_means() -> None:
    parts = decompose(Mixtures.from_vertices([[0.5, 0.5], [1, 0]]), base=2)

    assert " ".join(repr(parts).split()) == (
        "Decomposition(2 items, mean predictive 0.5 = aleatoric 0 + epistemic 0.5, "
        "Shannon(base=2), mutual-information)"
    )


def test_a_decomposition_of_no_items_prints() -> None:
    nothing: list[int] = []

    assert repr(decompose(Mixtures.from_points([[0.5, 0.5]])[nothing])).startswith(
        "Decomposition(0 items"
    )


def test_a_decomposition_becomes_a_dictionary() -> None:
    parts = decompose(Mixtures.from_points([[0.5, 0.5]]))

    assert list(parts.as_dict()) == ["predictive", "aleatoric", "epistemic"]


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_decomposition_becomes_a_dataframe(backend: str) -> None:
    library = pytest.importorskip(backend)
    parts = decompose(Mixtures.from_vertices([[0.5, 0.5], [1, 0]]), base=2)
    frame = parts.to_frame(backend)

    assert isinstance(frame, library.DataFrame)
    assert {name: list(frame[name]) for name in frame.columns} == {
        k: v.tolist() for k, v in parts.as_dict().items()
    }


# Losses


@each_entropy
@given(data=st.data())
def test_the_total_loss_is_the_mean_loss_of_the_predicted_mean(
    entropy: Entropy, data: st.DataObject
) -> None:
    truth = data.draw(mixtures(3, n_items=3))
    predicted = data.draw(mixtures(3, n_items=3))
    slow = [
        sum(
            w * float(entropy.loss(p, predicted.mean()[i], check_input=False))
            for w, p in reference.atoms_of(truth, i)
        )
        for i in range(3)
    ]

    np.testing.assert_allclose(decompose_loss(predicted, truth, entropy).total, slow, atol=1e-10)


@each_entropy
@given(data=st.data())
def test_the_causes_of_a_loss_add_up_and_are_not_negative(
    entropy: Entropy, data: st.DataObject
) -> None:
    truth = data.draw(mixtures(3, n_items=3))
    parts = decompose_loss(data.draw(mixtures(3, n_items=3)), truth, entropy)
    causes = np.stack([parts.aleatoric, parts.grouping, parts.calibration])

    assert (causes >= -1e-12).all()
    np.testing.assert_allclose(causes.sum(axis=0), parts.total, atol=1e-12)


@given(data=st.data())
def test_each_cause_of_a_brier_loss_equals_its_loop(data: st.DataObject) -> None:
    truth = data.draw(mixtures(3, n_items=2))
    predicted = data.draw(mixtures(3, n_items=2))
    parts = decompose_loss(predicted, truth, "brier")
    for i in range(2):
        atoms = reference.atoms_of(truth, i)
        expected = (
            sum(w * reference.brier(p) for w, p in atoms),
            reference.mutual_information(atoms, reference.squared_distance),
            reference.squared_distance(reference.mean(atoms), predicted.mean()[i]),
        )

        assert (parts.aleatoric[i], parts.grouping[i], parts.calibration[i]) == pytest.approx(
            expected, abs=1e-12
        )


@given(m=mixtures())
def test_predicting_the_true_mean_leaves_no_calibration_loss(m: Mixtures) -> None:
    np.testing.assert_allclose(
        decompose_loss(Mixtures.from_points(m.mean()), m).calibration, 0, atol=1e-12
    )


def test_a_prediction_that_excludes_a_label_loses_infinitely_much() -> None:
    parts = decompose_loss(Mixtures.from_points([[1, 0]]), Mixtures.from_points([[0.5, 0.5]]))

    assert (parts.calibration[0], parts.total[0]) == (math.inf, math.inf)


def test_an_empty_cell_has_no_loss() -> None:
    empty = Mixtures([[0.5, 0.5]], [1.0], offsets=[0, 0, 1], index=[0, 1])
    parts = decompose_loss(Mixtures.from_points([[0.5, 0.5]] * 2), empty)

    assert np.isnan(parts.total).tolist() == [True, False]


def test_a_loss_decomposition_becomes_a_dictionary() -> None:
    m = Mixtures.from_points([[0.5, 0.5]])
    parts = decompose_loss(m, m, base=2)

    assert isinstance(parts, LossDecomposition)
    assert {name: part.tolist() for name, part in parts.as_dict().items()} == {
        "total": [1],
        "aleatoric": [1],
        "grouping": [0],
        "calibration": [0],
    }


# Bad input


@pytest.mark.parametrize("kind", ["forward", 3, None])
def test_an_unknown_kind_lists_the_known_ones(kind: Any) -> None:
    with pytest.raises(
        ValueError, match="`kind` must be one of 'mutual-information', 'reverse', 'total', got"
    ):
        decompose(Mixtures.from_points([[0.5, 0.5]]), kind=kind)


def test_an_unknown_entropy_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`entropy` must be one of 'shannon', .* got 'renyi'"):
        decompose(Mixtures.from_points([[0.5, 0.5]]), "renyi")


@pytest.mark.parametrize("entropy", ["brier", Brier(), Shannon()])
def test_a_base_without_shannon_by_name_is_refused(entropy: Any) -> None:
    with pytest.raises(
        ValueError, match="`base` must be left out unless entropy='shannon', got base=2 with"
    ):
        decompose(Mixtures.from_points([[0.5, 0.5]]), entropy, base=2)


def test_a_convex_function_does_not_decompose() -> None:
    with pytest.raises(ValueError, match="`value` must be concave"):
        decompose(Mixtures.from_points([[0.5, 0.5]]), Custom(lambda p: np.square(p).sum(axis=-1)))


@pytest.mark.parametrize("mixtures", [[[0.5, 0.5]], np.array([[0.5, 0.5]])], ids=["list", "array"])
def test_an_array_does_not_decompose(mixtures: Any) -> None:
    with pytest.raises(ValueError, match="`mixtures` must be"):
        decompose(mixtures)


def test_losses_of_different_items_are_refused() -> None:
    one, two = Mixtures.from_points([[0.5, 0.5]]), Mixtures.from_points([[0.5, 0.5]] * 2)

    with pytest.raises(
        ValueError, match="`predicted` and `truth` must describe the same items, got 1 and 2 rows"
    ):
        decompose_loss(one, two)


def test_losses_over_different_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="`truth` must have 2 classes, got 3"):
        decompose_loss(Mixtures.from_points([[0.5, 0.5]]), Mixtures.from_points([[0.2, 0.3, 0.5]]))


def test_a_decomposition_is_the_documented_type() -> None:
    assert isinstance(decompose(Mixtures.from_points([[0.5, 0.5]])), Decomposition)


def test_a_missing_dataframe_library_is_named() -> None:
    """In a new process: narwhals may remember a pandas that it has used."""
    code = "import sys; sys.modules['pandas'] = None; import hocal; "
    code += "hocal.decompose(hocal.Mixtures.from_points([[0.5, 0.5]])).to_frame()"
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert (
        "ImportError: `to_frame` needs pandas. Install it with: pip install pandas"
        in finished.stderr
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_array_of_members_needs_no_mixtures_and_no_copy(dtype: Any) -> None:
    members = np.random.default_rng(0).dirichlet(np.ones(20), size=(20_000, 5)).astype(dtype)
    expected = decompose(Mixtures.from_ensemble(members), base=2).as_dict()

    tracemalloc.start()
    parts = decompose(members, base=2).as_dict()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert all(np.array_equal(parts[name], expected[name]) for name in expected)
    assert peak < 0.5 * members.nbytes
    assert members.flags.writeable


def test_an_array_that_holds_no_ensemble_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`mixtures` must be Mixtures, got ndarray\. Build them with"
    ):
        decompose(np.full((2, 2), 0.5))


def test_a_panel_of_a_billion_is_refused() -> None:
    with pytest.raises(InputError, match=r"`panel_size` must be an integer from 1 to 10000, got"):
        decompose(Mixtures.from_points([[0.5, 0.5]]), panel_size=10**9)


def test_a_large_panel_is_computed_in_pieces() -> None:
    """Of n labels from (1/2, 1/2), the Shannon entropy is lower by about 1 / (2 n)."""
    mixtures = Mixtures.from_points(np.full((500, 2), 0.5))

    found = decompose(mixtures, panel_size=10_000).aleatoric

    np.testing.assert_allclose(found, np.log(2) - 0.5e-4, atol=1e-7)


# The loss of a random draw


@pytest.mark.parametrize("entropy", ["shannon", "brier", "spherical"])
def test_the_loss_of_a_draw_is_the_mean_over_pairs_of_atoms(entropy: str) -> None:
    """L(p*||p) over all pairs of a true and a predicted atom, in a plain loop."""
    generator = np.random.default_rng(5)
    points = generator.dirichlet(np.ones(3), size=(2, 2, 4))  # predicted or true, item, atom
    predicted, truth = (Mixtures.from_ensemble(each) for each in points)
    measure = {"shannon": Shannon(), "brier": Brier(), "spherical": Spherical()}[entropy]

    found = decompose_loss(predicted, truth, entropy, of="draw")

    for item in range(2):
        pairs = [measure.loss(true, drawn) for true in points[1, item] for drawn in points[0, item]]
        assert found.total[item] == pytest.approx(np.mean(pairs))
    np.testing.assert_allclose(
        found.total, found.aleatoric + found.grouping + found.calibration, atol=1e-12
    )


def test_a_calibrated_draw_loses_the_total_predictive_uncertainty() -> None:
    mixtures = Mixtures.from_ensemble(np.random.default_rng(6).dirichlet(np.ones(3), size=(5, 7)))

    found = decompose_loss(mixtures, mixtures, of="draw")

    np.testing.assert_allclose(found.total, decompose(mixtures, kind="total").predictive)


def test_a_draw_costs_the_variance_of_the_mixture_in_brier_score() -> None:
    """E||m* - p||^2 = ||m* - m||^2 + E||p - m||^2, right mean or not."""
    generator = np.random.default_rng(7)
    predicted, truth = (
        Mixtures.from_ensemble(generator.dirichlet(np.ones(3), size=(4, 6))) for _ in range(2)
    )

    draw, mean = (
        decompose_loss(predicted, truth, "brier", of=of).total  # type: ignore[arg-type]
        for of in ("draw", "mean")
    )

    np.testing.assert_allclose(draw - mean, decompose(predicted, "brier").epistemic)


def test_simulated_draws_lose_what_is_computed() -> None:
    """Two coins that are predicted wrongly: 200,000 draws, each labelled once."""
    generator = np.random.default_rng(8)
    predicted = Mixtures([[0.9, 0.1], [0.4, 0.6]], [0.3, 0.7], [0, 2], [0])
    truth = Mixtures([[0.7, 0.3], [0.2, 0.8]], [0.6, 0.4], [0, 2], [0])
    drawn = predicted.points[(generator.random(200_000) > 0.3).astype(int)]
    true = truth.points[(generator.random(200_000) > 0.6).astype(int)]
    labels = (generator.random(200_000) > true[:, 0]).astype(int)

    losses = -np.log(drawn[np.arange(200_000), labels])

    found = decompose_loss(predicted, truth, of="draw").total[0]
    assert losses.mean() == pytest.approx(found, abs=4 * losses.std() / np.sqrt(200_000))


def test_a_draw_that_excludes_what_happens_loses_without_bound() -> None:
    predicted, truth = Mixtures.from_vertices([[0.5, 0.5]]), Mixtures.from_points([[0.5, 0.5]])

    assert decompose_loss(predicted, truth, of="draw").total[0] == np.inf
