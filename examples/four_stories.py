"""Replay four stories on real labels: what a person types, how long it takes, and whether it holds.

    HOCAL_DATA=... python examples/four_stories.py [--folder F] [--n-items 3000] [--no-browser]

1. A table of a crowd, and no model: which tweets do people disagree about?
2. A network and a few labels per image: CIFAR-10H.
3. Four networks as an ensemble: faces of FER+.
4. Six language models that judge summaries, aspect by aspect: SummEval.

Each story writes the files that a person would have, runs the commands, opens the page in Chromium
(wide and narrow, light and dark; axe-core looks for barriers) and holds the order of the items
against labels that no command has seen: sorted by aleatoric uncertainty, those that people disagree
about come first, at least as well as a logistic regression on the same inputs has them.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import entr
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from hocal.datasets import (
    load_cifar10_softmax,
    load_cifar10h,
    load_crowd,
    load_ferplus,
    load_judges,
)
from hocal.uncertainty import pair_disagreement

ROOT = Path(__file__).parents[1]
FACES = ROOT / "experiments" / "results" / "ferplus-networks.npz"  # written by ferplus_networks.py
NETWORKS = tuple(f"mean snapshots {k}" for k in (1, 2, 3, 4))
N_SEEN = 5  # labels per item that commands see, where there are more
SMALLEST = 1e-6  # a probability of 0 has no logarithm
N_RESAMPLES = 200  # of the standard error: two digits of it
SCREENS = [(1280, False), (1280, True), (390, False), (390, True)]  # width, whether dark
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

Array = np.ndarray


class Story(NamedTuple):
    """Files lie in a folder; what to type there, and what to hold the answers against."""

    name: str
    commands: list[str]
    page: str  # a file that the commands write
    table: str  # another, with a row per item and its aleatoric uncertainty
    items: Array  # names of some of its items ...
    held_out: Array  # ... what people said about them that no command has seen, (n, n_classes)
    baseline: Array  # ... and the entropy that a logistic regression predicts


class Outcome(NamedTuple):
    """What came of a story."""

    name: str
    seconds: list[tuple[str, float]]  # of each command
    ours: float  # rank correlation of aleatoric uncertainty with held-out disagreement
    theirs: float  # that of the logistic regression
    error: float  # standard error of the difference
    first: float  # held-out disagreement of the tenth of items that come first ...
    mean: float  # ... and of all
    complaints: list[str]  # of the browser and axe-core about the page

    @property
    def holds(self) -> bool:
        """Whether the order is no worse than the regression's, to within two standard errors."""
        return self.ours >= self.theirs - 2 * self.error and self.first > self.mean


# --- What people have ---------------------------------------------------------------------------


def tell_of_a_crowd(folder: Path, n_items: int) -> Story:
    """Five labels of each tweet go into the table, all others are held out."""
    crowd = load_crowd("CF_amt").to_frame().drop_duplicates(["item", "worker"])
    shuffled = crowd.sample(frac=1, random_state=0)
    shuffled = shuffled[shuffled["item"].isin(crowd["item"].unique()[:n_items])]
    seen = shuffled.groupby("item").cumcount() < N_SEEN
    shuffled[seen][["item", "worker", "label"]].to_csv(folder / "labels.csv", index=False)
    classes = sorted(crowd["label"].unique())
    given = count(shuffled[seen], "item", "label", classes)
    other = count(shuffled[~seen], "item", "label", classes).loc[given.index]
    return Story(
        "a table of a crowd",
        ["hocal labels labels.csv --item item --label label --annotator worker "
         "-o report.html --items uncertainty.csv"],
        "report.html",
        "uncertainty.csv",
        given.index.to_numpy(),
        other.to_numpy(),
        predict_from_other_labels(given.to_numpy()),
    )  # fmt: skip


def tell_of_images(folder: Path, n_items: int) -> Story:
    """Half of the images calibrate with five labels each."""
    counts = load_cifar10h().counts
    network = load_cifar10_softmax("resnet18")
    order = np.random.default_rng(0).permutation(len(counts))[:n_items]
    calibration, test = np.split(order, [n_items // 2])
    five, _ = split_labels(counts, N_SEEN)
    p = network.probabilities
    write_predictions(folder / "softmax.csv", "image", calibration, p, network.classes)
    write_predictions(folder / "new.csv", "image", test, p, network.classes)
    write_labels(folder / "labels.csv", "image", calibration, five, network.classes)
    write_labels(folder / "checked.csv", "image", test, five, network.classes)
    inputs = np.log(np.maximum(p, SMALLEST))
    return Story(
        "a network and few labels",
        ["hocal fit labels.csv softmax.csv -o model.hocal --item image --label choice",
         "hocal predict model.hocal new.csv -o uncertainty.csv",
         "hocal evaluate model.hocal checked.csv new.csv --label choice",
         "hocal report model.hocal new.csv --labels checked.csv --label choice --no-planning "
         "-o report.html"],
        "report.html",
        "uncertainty.csv",
        test,
        counts[test] - five[test],
        predict_entropy(inputs[calibration], five[calibration], inputs[test]),
    )  # fmt: skip


def tell_of_faces(folder: Path, n_items: int) -> Story:
    """Four networks that were trained differently, each with a file of its own."""
    data = load_ferplus("test")
    with np.load(FACES) as file:
        members = np.stack([file[name].astype(np.float64) for name in NETWORKS], axis=1)
    members /= members.sum(axis=2, keepdims=True)  # single precision
    order = np.random.default_rng(0).permutation(len(members))[:n_items]
    calibration, test = np.split(order, [n_items // 2])
    five, rest = split_labels(data.counts, N_SEEN)
    for number in range(len(NETWORKS)):
        for name, rows in {"softmax": calibration, "new": test}.items():
            path = folder / f"{name}{number}.csv"
            write_predictions(path, "face", rows, members[:, number], data.classes)
    write_labels(folder / "labels.csv", "face", calibration, five, data.classes)
    write_labels(folder / "checked.csv", "face", test, five, data.classes)
    inputs = np.log(np.maximum(members, SMALLEST)).reshape(len(members), -1)
    others = {name: ",".join(f"{name}{n}.csv" for n in (1, 2, 3)) for name in ("softmax", "new")}
    return Story(
        "an ensemble",
        [f"hocal fit labels.csv softmax0.csv --ensemble {others['softmax']} "
         "-o model.hocal --item face --label choice",
         f"hocal predict model.hocal new0.csv --ensemble {others['new']} -o uncertainty.csv",
         f"hocal report model.hocal new0.csv --ensemble {others['new']} "
         "--labels checked.csv --label choice --no-planning -o report.html"],
        "report.html",
        "uncertainty.csv",
        test,
        rest[test],
        predict_entropy(inputs[calibration], five[calibration], inputs[test]),
    )  # fmt: skip


def tell_of_judges(folder: Path, n_items: int) -> Story:
    """Let the votes of six language models predict three experts; the aspect is known as well."""
    data = load_judges("summeval")
    assert data.probabilities is not None
    aspect = np.array([name.rsplit("__", 1)[1] for name in data.items])
    order = np.random.default_rng(0).permutation(len(data.items))[:n_items]
    calibration, test = np.split(order, [n_items // 2])
    votes = data.probabilities.mean(axis=1)
    for name, rows in {"votes": calibration, "new": test}.items():
        path = folder / f"{name}.csv"
        write_predictions(path, "summary", rows, votes, data.classes, aspect=aspect)
    write_labels(folder / "labels.csv", "summary", calibration, data.counts, data.classes)
    inputs = np.column_stack([votes, pd.get_dummies(aspect).to_numpy(dtype=float)])
    columns = "--probability-columns " + ",".join(data.classes)
    return Story(
        "language models that judge",
        [f"hocal fit labels.csv votes.csv --by aspect {columns} -o model.hocal "
         "--item summary --label choice",
         "hocal predict model.hocal new.csv -o uncertainty.csv",
         "hocal report model.hocal new.csv --no-planning -o report.html"],
        "report.html",
        "uncertainty.csv",
        test,
        data.counts[test],
        predict_entropy(inputs[calibration], data.counts[calibration], inputs[test]),
    )  # fmt: skip


STORIES: dict[str, Callable[[Path, int], Story]] = {
    "crowd": tell_of_a_crowd,
    "images": tell_of_images,
    "faces": tell_of_faces,
    "judges": tell_of_judges,
}


def count(table: pd.DataFrame, item: str, label: str, classes: Iterable[Any]) -> pd.DataFrame:
    """Return how often each item got each label."""
    counts = pd.crosstab(table[item], table[label])
    return counts.reindex(columns=list(classes), fill_value=0)


def split_labels(counts: Array, n_seen: int) -> tuple[Array, Array]:
    """Return some labels of each item, drawn without replacement, and the others."""
    generator = np.random.default_rng(1)
    seen = generator.multivariate_hypergeometric
    drawn = np.array([seen(row, min(n_seen, int(row.sum()))) for row in counts])
    return drawn, counts - drawn


def write_predictions(
    path: Path, item: str, rows: Array, p: Array, classes: Iterable[str], **more: Array
) -> None:
    """Write one row per item: its name, whatever else is known, and probabilities."""
    table = pd.DataFrame(p[rows], columns=list(classes))
    for name, values in {item: np.arange(len(p)), **more}.items():
        table.insert(0, name, values[rows])
    table.to_csv(path, index=False)


def write_labels(path: Path, item: str, rows: Array, counts: Array, classes: Any) -> None:
    """Write one row per judgement."""
    which, label = np.nonzero(counts[rows])
    times = counts[rows][which, label]
    names = np.repeat(rows[which], times)
    chosen = np.repeat(np.array(classes)[label], times)
    pd.DataFrame({item: names, "choice": chosen}).to_csv(path, index=False)


# --- What to hold it against --------------------------------------------------------------------


def predict_entropy(inputs: Array, counts: Array, new: Array) -> Array:
    """Return the entropy of what a logistic regression on all labels predicts for new items."""
    which, label = np.nonzero(counts)
    scaled = StandardScaler().fit(inputs)
    regression = LogisticRegression(max_iter=1000)
    regression.fit(scaled.transform(inputs[which]), label, sample_weight=counts[which, label])
    return np.asarray(entr(regression.predict_proba(scaled.transform(new))).sum(axis=1))


def predict_from_other_labels(counts: Array) -> Array:
    """Return the same from an item's own labels: each is learned from the item's others."""
    which, label = np.nonzero(counts)
    others = counts[which] - np.eye(counts.shape[1])[label]
    regression = LogisticRegression(max_iter=1000)
    shares = others / others.sum(axis=1, keepdims=True)
    regression.fit(shares, label, sample_weight=counts[which, label])
    own = counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(entr(regression.predict_proba(own)).sum(axis=1))


def rank(scores: Array, truth: Array) -> float:
    """Return Spearman's rank correlation."""
    return float(spearmanr(scores, truth).statistic)


def standard_error(ours: Array, theirs: Array, truth: Array) -> float:
    """Return that of the difference of two rank correlations, from resampled items."""
    generator = np.random.default_rng(0)
    draws = generator.integers(len(truth), size=(N_RESAMPLES, len(truth)))
    found = [rank(ours[rows], truth[rows]) - rank(theirs[rows], truth[rows]) for rows in draws]
    return float(np.std(found))


# --- The play -----------------------------------------------------------------------------------


def run_in_a_process(command: str, folder: Path) -> None:
    """Run a command as a shell would."""
    _, *arguments = shlex.split(command)
    call = [sys.executable, "-c", "from hocal.cli import main; main()", *arguments]
    subprocess.run(call, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def play(
    story: Story,
    folder: Path,
    run: Callable[[str, Path], None] = run_in_a_process,
    browser: Any = None,
) -> Outcome:
    """Run the commands of a story, look at its page and judge its answers."""
    seconds = []
    for command in story.commands:
        begun = time.perf_counter()
        run(command, folder)
        seconds.append((command, time.perf_counter() - begun))
    table = pd.read_csv(folder / story.table)
    aleatoric = table.set_index(table.columns[0])["aleatoric"].loc[story.items].to_numpy()
    truth = pair_disagreement(story.held_out)
    first = np.argsort(-aleatoric, kind="stable")[: len(truth) // 10]
    return Outcome(
        story.name,
        seconds,
        rank(aleatoric, truth),
        rank(story.baseline, truth),
        standard_error(aleatoric, story.baseline, truth),
        float(truth[first].mean()),
        float(truth.mean()),
        look(folder / story.page, browser) if browser is not None else [],
    )


def look(page: Path, browser: Any) -> list[str]:
    """Open a page on every screen; return what is wrong with it."""
    complaints = []
    for width, dark in SCREENS:
        screen = f"{width} pixels, {'dark' if dark else 'light'}"
        browser.screen(width, dark=dark)
        browser.open(page)
        found = [*browser.messages, *browser.dialogs]
        found += [url for url in browser.requests if not url.startswith(("data:", page.as_uri()))]
        if browser.run("document.documentElement.scrollWidth") > width:
            found.append("wider than the screen")
        complaints += [f"{screen}: {words}" for words in [*found, *barriers(browser)]]
    return complaints


def barriers(browser: Any) -> list[str]:
    """Return what axe-core finds; nothing where it is not installed."""
    wheel = find_spec("axe_playwright_python")
    if wheel is None or wheel.origin is None:
        return []
    script = Path(wheel.origin).parent / "axe.min.js"
    browser.run(script.read_text(encoding="utf-8") + "; 0")
    found: list[str] = browser.run(
        f"axe.run(document, {{runOnly: {json.dumps(AXE_RULES)}, resultTypes: ['violations']}})"
        ".then(r => r.violations.map(v => v.help + ': ' + v.nodes[0].html))"
    )
    return found


def tell(outcome: Outcome, looked: bool) -> None:
    """Print what came of a story."""
    print(f"\n{outcome.name}")
    for command, seconds in outcome.seconds:
        print(f"  {seconds:5.1f} s  {command}")
    if looked:
        print("  page:", "; ".join(outcome.complaints) or "nothing wrong on any screen")
    print(
        f"  order against held-out labels: {outcome.ours:.3f}, "
        f"logistic regression {outcome.theirs:.3f} (standard error {outcome.error:.3f})"
    )
    print(
        f"  two people disagree about {outcome.first:.0%} in the first tenth, "
        f"about {outcome.mean:.0%} in all"
    )


def main() -> None:
    """Replay the stories."""
    parser = argparse.ArgumentParser(description="Replay four stories on real labels.")
    parser.add_argument("--folder", type=Path, help="to keep files and pages in")
    parser.add_argument("--n-items", type=int, default=3000, help="of each story, at most")
    parser.add_argument("--no-browser", action="store_true", help="do not open the pages")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        if chosen.no_browser:
            outcomes = replay(folder, chosen.n_items, None)
        else:
            sys.path.insert(0, str(ROOT / "tests"))
            from report.browser import browse

            with browse(Path(scratch) / "profile") as browser:
                outcomes = replay(folder, chosen.n_items, browser)
    sys.exit(0 if all(outcome.holds and not outcome.complaints for outcome in outcomes) else 1)


def replay(folder: Path, n_items: int, browser: Any) -> list[Outcome]:
    """Play all stories, each in a folder of its own, and tell them."""
    outcomes = []
    for name, begin in STORIES.items():
        own = folder.resolve() / name
        own.mkdir(parents=True)
        outcomes.append(play(begin(own, n_items), own, browser=browser))
        tell(outcomes[-1], browser is not None)
    return outcomes


if __name__ == "__main__":
    main()
