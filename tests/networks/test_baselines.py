"""Every baseline ends in Mixtures and is measured by the same functions."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

import hocal
from hocal.datasets import make_mixture_world
from hocal.torch import (
    DeepEnsemble,
    Epinet,
    EvidentialHead,
    MCDropout,
    MixtureHead,
    SnapshotHead,
    SoftmaxHead,
    predict_mixture,
)

BASELINES: dict[str, Callable[[], nn.Module]] = {
    "ensemble": lambda: DeepEnsemble(nn.Linear(8, 3) for _ in range(4)),
    "dropout": lambda: MCDropout(
        nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 3)), n_samples=6
    ),
    "epinet": lambda: Epinet(8, 3, n_samples=10),
    "evidential": lambda: EvidentialHead(3, 8, n_atoms=32),
    "evidential likelihood": lambda: EvidentialHead(3, 8, objective="likelihood", n_atoms=32),
    "points": lambda: SoftmaxHead(3, 8),
    "vertices": lambda: SoftmaxHead(3, 8, mixture="vertices"),
    "snapshots": lambda: SnapshotHead(2, 3, 8),
    "mixture": lambda: MixtureHead(4, 3, 8),
}
WORLD = make_mixture_world(60, 3, n_cells=3, random_state=0)
FEATURES = torch.from_numpy(WORLD.features).float()


@pytest.fixture(params=BASELINES)
def baseline(request: pytest.FixtureRequest) -> nn.Module:
    return BASELINES[request.param]()


def test_atoms_are_label_distributions(baseline: nn.Module) -> None:
    mixtures = predict_mixture(baseline, FEATURES)

    hocal.Mixtures(
        mixtures.points, mixtures.weights, mixtures.offsets, mixtures.index
    )  # the public one checks all
    assert len(mixtures) == 60


def test_calibration_error_can_be_measured(baseline: nn.Module) -> None:
    counts = WORLD.draw(3, random_state=1)

    error = hocal.calibration_error(
        predict_mixture(baseline, FEATURES),
        counts,
        k=2,
        cells=WORLD.cells,
        n_resamples=2,
        random_state=0,
    )

    assert 0 < error.mean <= 2


def test_aleatoric_error_can_be_measured(baseline: nn.Module) -> None:
    parts = hocal.decompose(predict_mixture(baseline, FEATURES))

    error = hocal.aleatoric_error(
        parts, label_distributions=WORLD.label_distributions, cells=WORLD.cells
    )

    assert 0 < error <= np.log(3)


def test_coverage_can_be_measured(baseline: nn.Module) -> None:
    sets = hocal.predict_set(predict_mixture(baseline, FEATURES), coverage=0.9).expand(2.0)

    assert hocal.coverage(sets, label_distributions=WORLD.label_distributions) == 1.0


def test_post_hoc_calibration_goes_on_top_in_one_line(baseline: nn.Module) -> None:
    mixtures = predict_mixture(baseline, FEATURES)

    calibrator = hocal.SnapshotCalibrator(method="empirical").fit(
        mixtures.mean(), WORLD.draw(2, random_state=0)
    )

    assert len(calibrator.predict_mixture(mixtures.mean())) == 60


def test_loss_falls_along_its_gradient(baseline: nn.Module) -> None:
    counts = torch.from_numpy(WORLD.draw(4, random_state=0))
    optimiser = torch.optim.SGD(baseline.parameters(), lr=0.01)
    losses = []
    for _ in range(20):
        torch.manual_seed(0)  # the same dropout and the same indices each time
        loss = baseline.loss(baseline(FEATURES), counts)  # type: ignore[operator]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))

    assert losses[-1] < losses[0]


def test_ensemble_members_get_the_gradients_of_training_alone() -> None:
    member, counts = nn.Linear(8, 3), torch.from_numpy(WORLD.draw(1, random_state=0))
    SoftmaxHead(3).loss(member(FEATURES), counts).backward()
    alone = member.weight.grad
    member.zero_grad(set_to_none=True)

    ensemble = DeepEnsemble([member, nn.Linear(8, 3)])
    ensemble.loss(ensemble(FEATURES), counts).backward()

    torch.testing.assert_close(member.weight.grad, alone)


def test_an_ensemble_needs_members() -> None:
    with pytest.raises(ValueError, match="`members` must be an integer of at least 1, got 0"):
        DeepEnsemble([])


def test_dropout_stays_on_when_predicting() -> None:
    model = MCDropout(nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3)), n_samples=8).eval()

    assert float(model(FEATURES).detach().std(dim=1).min()) > 0


def test_normalisation_is_off_when_predicting_with_dropout() -> None:
    normalised = nn.BatchNorm1d(8)

    MCDropout(nn.Sequential(normalised, nn.Dropout(0.5))).eval()

    assert not normalised.training


def test_dropout_passes_once_in_training() -> None:
    assert MCDropout(nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3))).train()(FEATURES).shape == (
        60,
        1,
        3,
    )


def test_a_model_without_dropout_is_refused() -> None:
    with pytest.raises(ValueError, match="must have a dropout layer, got Linear without one"):
        MCDropout(nn.Linear(2, 2))


def test_epinet_predictions_repeat() -> None:
    model = Epinet(8, 3).eval()

    assert torch.equal(model(FEATURES), model(FEATURES))


def test_epinet_draws_five_indices_in_training() -> None:
    assert Epinet(8, 3).train()(FEATURES).shape == (60, 5, 3)


def test_epinet_is_the_sum_of_its_three_parts() -> None:
    model = Epinet(2, 3, n_indices=4, prior_scale=3.0, n_samples=1).eval()
    x, z = torch.randn(1, 2), model.indices[0]
    told = torch.cat([z, x[0]])
    parts = [network(told).reshape(3, 4) @ z for network in (model.learned, model.prior)]

    expected = model.base(x[0]) + parts[0] + 3.0 * parts[1]

    torch.testing.assert_close(model(x)[0, 0], expected)


def test_epinet_prior_is_frozen() -> None:
    assert not any(parameter.requires_grad for parameter in Epinet(8, 3).prior.parameters())


def test_epinet_passes_gradients_to_the_features_through_the_base_only() -> None:
    model, x = Epinet(2, 3), torch.randn(1, 2, requires_grad=True)

    model(x)[0, 0, 0].backward()

    torch.testing.assert_close(x.grad, model.base.weight[:1])


def test_evidential_likelihood_is_dirichlet_multinomial() -> None:
    head, outputs, counts = (
        EvidentialHead(3, objective="likelihood"),
        torch.randn(1, 3).double(),
        [3, 0, 2],
    )
    alpha = head.concentrations(outputs)[0].numpy()

    expected = -stats.dirichlet_multinomial(alpha, 5).logpmf(counts)

    assert float(head.loss(outputs, torch.tensor([counts]))) == pytest.approx(float(expected))


def test_evidential_risk_is_the_expected_cross_entropy() -> None:
    head, outputs = (
        EvidentialHead(2, penalty=0.0, n_atoms=4096),
        torch.tensor([[2.0, -1.0]]).double(),
    )

    expected = head.to_mixtures(outputs).expect(lambda p: -np.log(p[:, 0]))[0]

    assert float(head.loss(outputs, torch.tensor([[1, 0]]))) == pytest.approx(expected, rel=1e-3)


def test_evidential_penalty_is_the_divergence_of_misleading_evidence() -> None:
    outputs, counts = torch.tensor([[2.0, 1.0, 0.5]]).double(), torch.tensor([[1, 0, 0]])
    evidence = EvidentialHead(3).concentrations(outputs)[0]
    misleading = torch.distributions.Dirichlet(
        torch.stack([torch.tensor(1.0), evidence[1], evidence[2]])
    )
    expected = torch.distributions.kl_divergence(
        misleading, torch.distributions.Dirichlet(torch.ones(3).double())
    )

    gap = EvidentialHead(3, penalty=1.0).loss(outputs, counts) - EvidentialHead(
        3, penalty=0.0
    ).loss(outputs, counts)

    torch.testing.assert_close(gap, expected)


def test_evidential_loss_passes_the_gradient_check() -> None:
    counts, outputs = torch.tensor([[2, 1, 0]]), torch.randn(1, 3).double().requires_grad_()
    for head in (EvidentialHead(3), EvidentialHead(3, objective="likelihood")):

        def loss(z: Tensor, head: EvidentialHead = head) -> Tensor:
            return head.loss(z, counts)

        assert torch.autograd.gradcheck(loss, outputs)


def test_naive_readings_have_no_epistemic_and_no_aleatoric_uncertainty() -> None:
    logits = torch.randn(5, 3)
    points, vertices = (
        hocal.decompose(SoftmaxHead(3, mixture=name).to_mixtures(logits))
        for name in ("points", "vertices")
    )

    np.testing.assert_allclose(points.epistemic, 0, atol=1e-12)
    np.testing.assert_allclose(vertices.aleatoric, 0, atol=1e-12)


def test_a_model_without_a_head_is_refused() -> None:
    with pytest.raises(ValueError, match="must have a method to_mixtures, got Linear"):
        predict_mixture(nn.Linear(2, 2), torch.zeros(1, 2))


def test_predicting_leaves_the_mode_of_the_model_alone() -> None:
    model = SoftmaxHead(3, 8).train()

    predict_mixture(model, FEATURES)

    assert model.training
