"""Sets of labels: which classes are in them, and how often they hold a new person's label."""

import numpy as np
import pytest

import hocal
from hocal import Mixtures, predict_set
from hocal.uncertainty.label_sets import N_STEPS, LabelScores, mass_before

SEED = 20240612


def test_without_calibration_the_fewest_likely_classes_reach_the_mass() -> None:
    sets = predict_set(
        Mixtures.from_points([[0.1, 0.6, 0.3], [0.34, 0.33, 0.33]]), kind="labels", coverage=0.85
    )

    assert sets.members.tolist() == [[False, True, True], [True, True, True]]
    np.testing.assert_allclose(sets.mass, [0.9, 1.0])


def test_the_score_of_a_label_is_the_mass_of_the_likelier_classes() -> None:
    found = mass_before(np.array([[0.2, 0.5, 0.3]]))

    np.testing.assert_allclose(found, [[0.8, 0.0, 0.5]])


def test_the_threshold_is_the_slow_obvious_one() -> None:
    """The smallest score t whose items' shares of labels with a score up to t add up to enough."""
    generator = np.random.default_rng(SEED)
    means = generator.dirichlet(np.ones(4), size=60)
    counts = generator.multinomial(3, [0.4, 0.3, 0.2, 0.1], size=60)
    steps = np.ceil(mass_before(means) * N_STEPS - 1e-9) / N_STEPS
    shares = counts / 3

    slow = min(
        t for t in np.unique(steps) if (shares * (steps <= t)).sum() >= 0.8 * (60 + 1) - 1e-9
    )

    assert LabelScores.of(means, counts).threshold(0.8) == pytest.approx(slow)


def test_an_item_counts_once_however_many_labels_it_has() -> None:
    means = np.array([[0.8, 0.2]] * 4)
    few = LabelScores.of(means, np.array([[1, 0], [1, 0], [1, 1], [0, 1]]))
    many = LabelScores.of(means, np.array([[9, 0], [1, 0], [5, 5], [0, 2]]))

    np.testing.assert_allclose(few.weights, many.weights)


def test_too_few_items_for_the_coverage_give_every_class() -> None:
    """Eight items cannot vouch for nine in ten."""
    mixtures = Mixtures.from_points([[0.98, 0.01, 0.01]] * 8)

    sets = predict_set(
        mixtures, kind="labels", coverage=0.9, calibration=(mixtures, [[2, 0, 0]] * 8)
    )

    assert sets.members.all()


def test_an_item_without_a_mixture_gets_every_class() -> None:
    nothing = Mixtures([[0.2, 0.3, 0.5]], [1.0], [0, 1, 1], [1])

    assert predict_set(nothing, kind="labels").members.all()


def test_higher_coverage_never_drops_a_class() -> None:
    generator = np.random.default_rng(SEED)
    mixtures = Mixtures.from_points(generator.dirichlet(np.ones(5), size=50))
    counts = generator.multinomial(2, np.full(5, 0.2), size=50)

    few, many = (
        predict_set(mixtures, kind="labels", coverage=level, calibration=(mixtures, counts))
        for level in (0.6, 0.8)
    )

    assert (many.members >= few.members).all()


def test_coverage_of_label_sets_is_the_share_of_labels_in_them_item_by_item() -> None:
    sets = predict_set(Mixtures.from_points([[0.9, 0.1], [0.2, 0.8]]), kind="labels", coverage=0.7)

    assert hocal.coverage(sets, [[3, 1], [1, 1]]) == pytest.approx((0.75 + 0.5) / 2)
    assert sets.contains([0, 0]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            lambda m: predict_set(m, kind="labels", calibration=m),
            "`calibration` must be a pair",
            id="no pair",
        ),
        pytest.param(
            lambda m: predict_set(m, calibration=(m, [[1, 1]])),
            '`calibration` must be left out unless kind="labels"',
            id="of distributions",
        ),
        pytest.param(
            lambda m: predict_set(m, kind="words"),
            "`kind` must be one of 'distributions', 'labels', got 'words'",
            id="kind",
        ),
        pytest.param(
            lambda m: predict_set(m, kind="labels").contains([2]),
            "`labels` must be",
            id="class number",
        ),
    ],
)
def test_bad_input_is_refused(call: object, message: str) -> None:
    with pytest.raises(hocal.InputError, match=message):
        call(Mixtures.from_points([[0.5, 0.5]]))  # type: ignore[operator]


def worlds(generator: np.random.Generator, n_worlds: int, n_items: int) -> tuple[np.ndarray, ...]:
    """Return predictions, which are far from calibrated, and the truth behind them."""
    truth = generator.dirichlet([0.6, 0.3, 0.2, 0.1], size=(n_worlds, n_items))
    logits = 2.5 * np.log(truth + 0.02) + generator.normal(0, 1.5, truth.shape)
    wrong = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return wrong / wrong.sum(axis=-1, keepdims=True), truth


@pytest.mark.parametrize("n_items", [20, 100])
@pytest.mark.parametrize("miss", [0.1, 0.3])
def test_sets_hold_a_new_label_as_often_as_promised(n_items: int, miss: float) -> None:
    """One to five labels per item, more where people agree; 1,000 worlds, 20 new items each."""
    generator = np.random.default_rng(SEED)
    n_worlds, n_new = 1000, 20
    means, truth = worlds(generator, n_worlds, n_items + n_new)
    totals = 1 + (truth.max(axis=-1) * 4.99).astype(int)
    counts = generator.multinomial(totals, truth)
    held = np.empty(n_worlds)
    for world in range(n_worlds):
        old, new = means[world, :n_items], means[world, n_items:]
        calibration = (Mixtures.from_points(old), counts[world, :n_items])
        sets = predict_set(
            Mixtures.from_points(new), kind="labels", coverage=1 - miss, calibration=calibration
        )
        held[world] = (sets.members * truth[world, n_items:]).sum(axis=1).mean()

    noise = 3 * held.std() / np.sqrt(n_worlds)
    assert held.mean() >= 1 - miss - noise
    assert held.mean() <= 1 - miss + 1 / (n_items + 1) + 0.03 + noise  # and no larger than needed
