"""How results look in notebooks and terminals."""

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

import hocal
from hocal._base.notebook import bar, table, wrap_text
from hocal.datasets import make_mixture_world


class Texts(HTMLParser):
    """Collects the texts of a piece of HTML and checks that its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    # the signature is that of HTMLParser
    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        """Note an element that must be closed."""
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Leave out an element that closes itself."""

    def handle_endtag(self, tag: str) -> None:
        """Close the last element."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)


@pytest.fixture(scope="module")
def fitted() -> hocal.SnapshotCalibrator:
    world = make_mixture_world(300, 3, random_state=0)
    return hocal.SnapshotCalibrator(hocal.TopLabelPartition(3)).fit(
        world.predictions, world.draw(3, random_state=1)
    )


@pytest.fixture(scope="module")
def predictions() -> np.ndarray:
    return make_mixture_world(300, 3, random_state=0).predictions


def test_a_table_escapes_everything() -> None:
    text = table("<caption>", ["<head>"], [["<name>", "<entry>"]], note="<note>")

    assert Texts(text).texts == ["<caption>", "<head>", "<name>", "<entry>", "<note>"]


def test_a_bar_has_the_shares_of_the_parts() -> None:
    text = bar(1.0, 3.0)

    assert "25% aleatoric, 75% epistemic" in text
    assert 'width="25.00"' in text
    assert 'x="25.00" width="75.00"' in text


def test_a_bar_of_nothing_is_empty() -> None:
    assert "<rect" not in bar(0.0, 0.0)


def test_long_lines_are_folded_at_spaces() -> None:
    lines = wrap_text("word " * 40).splitlines()

    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()) == ("word " * 40).strip()


def test_a_decomposition_shows_means_and_spread(
    fitted: hocal.SnapshotCalibrator, predictions: np.ndarray
) -> None:
    parts = fitted.decompose(predictions)

    texts = Texts(parts._repr_html_()).texts

    assert texts[0] == "Decomposition of 300 items, Shannon(base=None), mutual-information"
    assert f"{parts.aleatoric.mean():.4g}" in texts
    assert f"{parts.epistemic.max():.4g}" in texts


def test_a_decomposition_of_nothing_can_be_shown() -> None:
    nothing = hocal.Mixtures.from_points([[0.5, 0.5]])[np.array([], dtype=int)]

    assert "0 items" in Texts(hocal.decompose(nothing)._repr_html_()).texts[0]


def test_a_certificate_shows_its_largest_cells_and_assumptions(
    fitted: hocal.SnapshotCalibrator,
) -> None:
    certificate = fitted.certify()

    texts = Texts(certificate._repr_html_()).texts

    assert "confidence 0.95 for each cell" in texts[0]
    assert str(int(certificate.n_items.argmax())) == texts[texts.index("epistemic") + 1]
    assert texts[-1] == " ".join(certificate.assumptions)


def test_a_calibration_error_shows_distance_chance_and_p_value(
    fitted: hocal.SnapshotCalibrator, predictions: np.ndarray
) -> None:
    counts = make_mixture_world(300, 3, random_state=0).draw(3, random_state=2)
    error = fitted.calibration_error(predictions, counts, k=2, n_resamples=20, random_state=0)

    texts = Texts(error._repr_html_()).texts

    assert [f"{error.mean:.3g}", f"{error.noise_floor:.3g}", f"{error.p_value:.3g}"] == texts[5:8]


def test_a_fitted_calibrator_adds_its_numbers_to_the_picture_of_scikit_learn(
    fitted: hocal.SnapshotCalibrator,
) -> None:
    assert "Calibrated on 900 labels of 300 items" in fitted._repr_html_()
    assert "Calibrated on 900 labels of 300 items" in fitted._repr_mimebundle_()["text/html"]


def test_an_unfitted_estimator_looks_as_scikit_learn_draws_it() -> None:
    for estimator in (hocal.SnapshotCalibrator(), hocal.HigherOrderCalibratedClassifier()):
        assert "Calibrated on" not in estimator._repr_html_()


def test_scikit_learn_configured_for_text_gets_no_html(fitted: hocal.SnapshotCalibrator) -> None:
    with config_context(display="text"):
        assert set(fitted._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(fitted, "_repr_html_")


def test_a_fitted_classifier_shows_the_numbers_of_its_calibrator() -> None:
    world = make_mixture_world(120, 3, random_state=0)
    classifier = hocal.HigherOrderCalibratedClassifier(LogisticRegression(), cv=2)

    assert (
        "Calibrated on 240 labels"
        in classifier.fit(world.features, world.draw(2, random_state=1))._repr_html_()
    )


def test_text_reprs_fit_a_terminal(
    fitted: hocal.SnapshotCalibrator, predictions: np.ndarray
) -> None:
    many = fitted.decompose(np.repeat(predictions, 1000, axis=0))
    counts = make_mixture_world(300, 3, random_state=0).draw(3, random_state=2)
    error = fitted.calibration_error(predictions, counts, k=2, n_resamples=20, random_state=0)

    for result in (many, fitted.certify(0.987654, simultaneous=True), error):
        assert max(map(len, repr(result).splitlines())) <= 80
