"""Write the figures of documents from the stored results, between the comments that name them.

    python experiments/tables.py

The documents are README.md here and of the repository, and some pages of docs/.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from protocol import METHODS, RESULTS

HERE = Path(__file__).parent
ROOT = HERE.parent
NAMES = {"empirical": "empirical (the paper's)", "cells": "cells", "items": "items"}
DEFAULT = "items"  # what hocal does unless told otherwise
LIMITS = ("deadline", "Hoeffding", "empirical Bernstein", "Clopper-Pearson")


def stored(name: str) -> Any:
    """Return a result file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def number(value: float, places: int = 3) -> str:
    """Return .123 for 0.123 and -.123 for -0.123."""
    return f"{value:.{places}f}".removeprefix("0").replace("-0.", "-.")


def spread(cell: dict[str, float], places: int = 3) -> str:
    """Return the mean and the middle 95% of the resamplings."""
    mean, lower, upper = (number(cell[name], places) for name in ("mean", "lower", "upper"))
    return f"{mean} ({lower} to {upper})"


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table in Markdown."""
    titles = [str(title) for title in head]
    lines = [titles, ["---"] * len(titles), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def claims() -> str:
    """Return the paper's claims with its numbers and ours."""
    cifar = stored("cifar10h_table")
    fer = stored("ferplus_table")
    binary = stored("binary_regression")
    first = cifar["post-hoc"]["resnet18"]["empirical"]["1"]["items"]
    seeds = cifar["without labels"]["eight seeds"]
    fall, papers_fall = (
        number(cifar["ratio to one label"][who]["50"]) for who in ("empirical", "paper")
    )
    learned = fer["learning"]["snapshots 4"]["own cells"]
    post_hoc = fer["post-hoc"]["empirical, without replacement"]
    epsilon = binary["epsilon"]["1000"]
    by_chance = number(epsilon["noise_floor"]["max"]["mean"])
    floor = f"{spread(epsilon['calibrated']['max'])}; by chance {by_chance}"
    xray = stored("xray")
    shown = stored("galleries")["ways"][DEFAULT]
    kinds = [shown[kind] for kind in ("most epistemic", "most aleatoric")]
    known = [
        number(xray[world]["cells, k = 2"]["aleatoric"], 2) for world in ("ambiguous", "clear")
    ]
    people = " against ".join(number(found["entropy of the labels"]["mean"]) for found in kinds)
    epinet = cifar["without labels"]["epinet"]
    rows = [
        [
            "figure 1: two labels tell the X-ray worlds apart",
            "1 and 0 bits",
            " and ".join(known) + " bits",
            "`xray.py`",
        ],
        ["table 1: error with one label", ".501", spread(first), "`cifar10h_table.py`"],
        ["table 1: what 50 labels leave of it", papers_fall, fall, "`cifar10h_table.py`"],
        ["table 1: ensemble of eight", ".308", spread(seeds["items"]), "`cifar10h_table.py`"],
        ["table 1: epinet", ".307", spread(epinet["items"]), "`cifar10h_table.py`"],
        ["table 2: learned from 4-snapshots", ".355", spread(learned), "`ferplus_table.py`"],
        ["table 2: post-hoc, four labels", ".139", spread(post_hoc["4"]), "`ferplus_table.py`"],
        ["table 2: post-hoc, ten labels", ".041", spread(post_hoc["10"]), "`ferplus_table.py`"],
        ["binary regression: epsilon", ".400 -+ .23", floor, "`binary_regression.py`"],
        [
            "figure 3: epistemic against aleatoric images",
            "by eye",
            f"label entropy {people}",
            "`galleries.py`",
        ],
    ]
    return table(["claim", "the paper", "ours (middle 95% of the resamplings)", "script"], rows)


def cifar10h() -> str:
    """Return the post-hoc rows for resnet18."""
    result = stored("cifar10h_table")
    row = result["post-hoc"]["resnet18"]
    paper = result["paper"]["post-hoc"]
    ratio = result["ratio to one label"]
    rows: list[list[str]] = []
    for method in METHODS:
        cells = row[method].values()
        rows.append([f"{NAMES[method]}, nats", *(spread(cell["items"]) for cell in cells)])
        rows.append(
            [f"{method}, bits", *(number(cell["items"]["mean"] / np.log(2)) for cell in cells)]
        )
        rows.append(
            [f"{method}, nats, cell-averaged", *(number(cell["cells"]["mean"]) for cell in cells)]
        )
        rows.append(
            [f"{method}, ratio to k = 1", *(number(value) for value in ratio[method].values())]
        )
    floor = stored("label_efficiency")["data"]["CIFAR-10H, resnet18"]["floor"]["mean"]
    means = np.array([cell["items"]["mean"] for cell in row["empirical"].values()]) - floor
    rows.insert(
        4, [f"empirical, ratio less a floor of {number(floor)}", *map(number, means / means[0])]
    )
    rows.append(["the paper", *(number(value) for value in paper.values())])
    rows.append(
        ["the paper, ratio to k = 1", *(number(value) for value in ratio["paper"].values())]
    )
    return table(["post-hoc", *(f"k = {k}" for k in paper)], rows)


def cifar10h_baselines() -> str:
    """Return the rows of methods without labels."""
    result = stored("cifar10h_table")
    paper = result["paper"]["without labels"]
    rows = []
    for name, cells in result["without labels"].items():
        errors = [spread(cells["items"]), number(cells["cells"]["mean"])]
        rows.append(
            [
                name,
                *errors,
                number(result["accuracy"][name]),
                number(paper[name]) if name in paper else "",
            ]
        )
    return table(
        ["without calibration labels", "nats", "cell-averaged", "accuracy", "the paper's error"],
        rows,
    )


def cifar10h_networks() -> str:
    """Return the errors of all networks for few labels, in nats."""
    result = stored("cifar10h_table")
    rows = [
        [name, number(result["accuracy"][name])]
        + [
            number(cells[method][k]["items"]["mean"])
            for method in METHODS
            for k in ("2", "5", "10")
        ]
        for name, cells in result["post-hoc"].items()
    ]
    return table(
        ["network", "accuracy", *(f"{method}, k = {k}" for method in METHODS for k in (2, 5, 10))],
        rows,
    )


def ferplus_learning() -> str:
    """Return the networks that learn from votes."""
    result = stored("ferplus_table")
    rows = []
    for name, cells in result["learning"].items():
        k = name.removeprefix("snapshots ")
        known = k in result["paper"]["learning"]
        papers = [
            number(result["paper"][what][k]) if known else "" for what in ("learning", "accuracy")
        ]
        accuracy = number(result["accuracy"][name])
        rows.append([f"k = {k}" if known else name, spread(cells["own cells"]), accuracy, *papers])
    return table(["learned from snapshots", "nats", "accuracy", "the paper", "its accuracy"], rows)


def ferplus_post_hoc() -> str:
    """Return post-hoc calibration with k votes."""
    result = stored("ferplus_table")
    rows = [
        [name, *(spread(cell) for cell in cells.values())]
        for name, cells in result["post-hoc"].items()
    ]
    paper = result["paper"]["post-hoc"]
    rows.append(["the paper", *map(number, paper.values())])
    return table(["post-hoc", *(f"k = {k}" for k in paper)], rows)


def binary_regression_epsilon() -> str:
    """Return the distances of the snapshots."""
    result = stored("binary_regression")["epsilon"]
    rows = [
        [
            f"{name.replace('_', ' ')}, {int(n_test):,} test items",
            spread(cells["max"]),
            spread(cells["quantile_95"]),
        ]
        for n_test, methods in result.items()
        for name, cells in methods.items()
    ]
    rows.append(["the paper: calibrated", ".400 -+ .23", ".212 -+ .089"])
    rows.append(["the paper: both baselines", ".959 -+ .014", ""])
    return table(["", "epsilon, max over cells", "95th percentile"], rows)


def binary_regression_errors() -> str:
    """Return the aleatoric error by labels."""
    result = stored("binary_regression")["aleatoric_error_bits"]
    rows = [
        [NAMES[method], *(number(cells[method]["mean"]) for cells in result.values())]
        for method in METHODS
    ]
    return table(["bits", *(f"k = {k}" for k in result)], rows)


def xray() -> str:
    """Return the doubt about a scan in both worlds."""
    result = stored("xray")
    names = list(result["ambiguous"])[:4]
    rows = [
        [f"{scenario}, {part}", *(number(result[scenario][name][part], 2) for name in names)]
        for scenario in ("ambiguous", "clear")
        for part in ("aleatoric", "epistemic")
    ]
    return table(["bits", *names], rows)


def entropy_histograms() -> str:
    """Return the mean entropies of the three cells."""
    result = {name: row for name, row in stored("entropy_histograms").items() if name != "unit"}
    first = next(iter(result.values()))
    rows = [
        ["test items", *first["items"]],
        ["observed mean", *map(number, first["observed mean"])],
    ]
    for name, row in result.items():
        rows.append([f"predicted mean, {name}", *map(number, row["predicted mean"])])
        rows.append(
            [f"W1 of the histograms, {name}", *map(number, row["distance of the histograms (W1)"])]
        )
    return table(["nats", *first["cells"]], rows)


def galleries() -> str:
    """Return what people make of both kinds of images."""
    rows = []
    for method, found in stored("galleries")["ways"].items():
        for kind in ("most epistemic", "most aleatoric"):
            people, right = (
                spread(found[kind][key]) for key in ("entropy of the labels", "accuracy")
            )
            rows.append([method, kind, people, right])
        rows.append([method, "difference", spread(found["difference"]), ""])
    return table(
        ["known from", "images", "entropy of people's labels, nats", "accuracy of the network"],
        rows,
    )


def calibration_errors() -> str:
    """Return the distances of all methods with their floors."""
    result = stored("calibration_errors")["by labels"]
    rows = [
        [name]
        + [
            text
            for found in (by_method[name] for by_method in result.values())
            for text in (number(found["mean"]), number(found["floor"]), number(found["p"]))
        ]
        + [
            "{} ({})".format(
                *(number(result["5"][name][key], 2) for key in ("max", "floor of max"))
            )
        ]
        for name in result["2"]
    ]
    heads = [f"{what}, k = {k}" for k in result for what in ("mean W1", "floor", "p")]
    return table(["method", *heads, "largest cell, k = 5 (floor)"], rows)


def label_efficiency() -> str:
    """Return errors by labels, and how many labels the paper's method needs instead."""
    rows = []
    for name, found in stored("label_efficiency")["data"].items():
        few = list(found["cells"])
        paper = [number(found["empirical"][k]["mean"]) for k in few]
        rows.append([name, NAMES["empirical"], *paper, number(found["floor"]["mean"])])
        for method, needed in found["labels the empirical method needs instead"].items():
            rows.append(["", method, *(spread(found[method][k]) for k in few), ""])
            rows.append(["", "labels the paper's method needs for it", *needed.values(), ""])
    return table(["data, model", "nats", *(f"k = {k}" for k in few), "floor"], rows)


def certificate_widths() -> str:
    """Return the widths of certified intervals."""
    result = stored("certificate_widths")
    rows = []
    for k, found in result["by labels"].items():
        widths = [number(cell["mean"]) for cell in found["width"].values()]
        paper = " / ".join(number(cell["mean"]) for cell in found["paper"].values())
        n_intervals = round(len(widths) * result["resamplings"] * found["intervals"]["mean"])
        rows.append([k, *widths, paper, f"{sum(found['missed in all'].values())} of {n_intervals}"])
    heads = [
        name.replace("shannon", "Shannon").replace("brier", "Brier") for name in found["width"]
    ]
    return table(["k", *heads, "the paper's, aleatoric (Shannon / Brier)", "misses"], rows)


def limit_widths() -> str:
    """Return the widths of limits of a mean, and of classical intervals."""
    rows = []
    for n_draws, laws in stored("limit_widths")["by draws"].items():
        for name, widths in laws.items():
            shown = [number(widths[method], 4) for method in LIMITS if method in widths]
            exact = shown[3] if len(shown) > 3 else "-"
            largest = number(widths["largest ratio to Hoeffding"], 2)
            rows.append([n_draws, name.replace(", 0.", ", ."), *shown[:3], exact, largest])
    heads = ["draws", "law", *LIMITS, "widest, of Hoeffding's"]
    return table(heads, rows)


def limit_widths_of_coins() -> str:
    """Return the widths of limits of a coin's mean, for 1,000 draws."""
    laws = stored("limit_widths")["by draws"]["1000"]
    rows = [
        [name.replace(", 0.", ", ."), *(number(widths.get(method, np.nan), 4) for method in LIMITS)]
        for name, widths in laws.items()
    ]
    return table(["1,000 draws", *LIMITS], rows).replace("| nan |", "| - |")


ENTROPY_LIMITS = [
    (limit, side)
    for limit in ("predictive", "bootstrap", "epistemic")
    for side in ("below", "above")
]


def entropy_limits() -> str:
    """Return the worst failure rates of limits of an entropy, and their mean distance."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, found in stored("entropy_limits")["settings"].items():
        _, classes, _, items = name.split(", ")
        groups.setdefault((classes, items.removeprefix("n=")), []).append(found)
    rows = []
    for group, settings in groups.items():
        row = list(group)
        for limit, side in ENTROPY_LIMITS:
            kept = [found[limit][side] for found in settings if limit in found]
            missed = max(each["missed"] for each in kept)
            distance = np.mean([each["distance"] for each in kept])
            row.append(f"{number(missed)} ({number(distance, 2)})")
        rows.append(row)
    heads = [f"{limit}, {side}" for limit, side in ENTROPY_LIMITS]
    return table(["worst share of misses (mean distance, nats)", "items", *heads], rows)


def ranking() -> str:
    """Return the share of pairs of networks whose log losses are told apart."""
    result = stored("ranking")
    rows = []
    for k, sizes in result["by labels per item"].items():
        for n_items, found in sizes.items():
            shares = [f"{each['decided']:.0%}" for each in found.values()]
            wrong = [f"{each['wrong']}" for each in found.values()]
            rows.append([int(n_items) * int(k), n_items, k, *shares, " / ".join(wrong)])
    methods = list(found)
    return table(["labels", "images", "labels per image", *methods, "wrong decisions"], rows)


def monitor() -> str:
    """Return what happens to streams of ever noisier images."""
    streams = stored("monitor")["streams"]
    rows = []
    for noise, found in streams.items():
        means = {name: cell["mean"] for name, cell in found.items()}
        rows.append(
            [
                noise,
                f"{means['alarm']:.0%}",
                f"{means['items until the alarm']:.0f}" if means["alarm"] == 1 else "-",
                *(f"{means[f'log10 evidence, {kind}']:.1f}" for kind in ("disagreement", "mean")),
                f"{means['failed certificates']:.0%}",
                f"{means['unlike without labels']:.0%}",
                f"{means['warning without labels']:.0%}",
            ]
        )
    heads = ["noise", "alarms", "items until then", "log10 evidence: disagreement", "mean"]
    heads += ["certificates that fail", "look unlike, no labels", "warned, no labels"]
    return table(heads, rows)


def monitor_parts() -> str:
    """Return what the uncertainty is made of at each level of noise."""
    names = [
        "people disagree",
        "expected",
        "networks agree with the majority",
        "aleatoric, fitted there",
        "aleatoric, as calibrated",
        "epistemic, fitted there",
        "epistemic, as calibrated",
    ]
    parts = stored("monitor")["parts"]
    rows = [[noise, *(number(parts[noise][name]["mean"]) for name in names)] for noise in parts]
    return table(["noise", *names], rows)


def monitor_streams() -> str:
    """Return false alarms and delays in simulated streams."""
    result = stored("monitor_streams")
    rows = []
    for found in result["changes"].values():
        cells = [number(found["shift of disagreement"])]
        for method in ("monitor", "CUSUM"):
            delay = found[method]["median delay"]
            cells += ["-" if delay is None else f"{delay:.0f}", f"{found[method]['found']:.0%}"]
        rows.append([*cells, found["fixed size"]])
    heads = ["disagreement rises by", "monitor: items", "found", "CUSUM: items", "found"]
    alarms = f"{result['false alarms']} false alarms in {result['streams']:,} streams.\n\n"
    return alarms + table([*heads, "fixed size: items"], rows)


def judges() -> str:
    """Return how well the votes of language models predict people, and what is left to gain."""
    rows = []
    for task, found in _judged_tasks():
        means = {name: cell["mean"] for name, cell in found["votes"].items()}
        losses = [number(means[name]) for name in ("raw", "temperature", "prior", "calibrated")]
        left = [number(means[name]) for name in ("irreducible", "remaining", "remaining at most")]
        sent = [f"{means['share with half of it']:.0%}", f"{means['gain over chance']:.1f}"]
        rows.append([task, found["items"], *losses, f"{means['agrees']:.0%}", *left, *sent])
    heads = ["task", "items", "raw", "temperature", "prior", "calibrated", "new person agrees"]
    heads += ["irreducible", "remaining", "at most", "items with half of the epistemic"]
    return table([*heads, "labels there, over chance"], rows)


def judges_stand_in() -> str:
    """Return how each language model agrees with people, and whom it may replace."""
    answers = {True: "yes", False: "no", None: "open"}
    rows = []
    for task, found in _judged_tasks():
        for model, duel in found["models"].items():
            _, estimate, lower, upper = duel["bias"]
            rows.append(
                [
                    task,
                    model,
                    number(duel["judge"]),
                    number(duel["people"]),
                    _limits(*duel["advantage"]),
                    answers[duel["acceptable"]],
                    f"{duel['replaceable']} / {duel['irreplaceable']} of {found['people']}",
                    f"{duel['bias'][0]}: {_limits(estimate, lower, upper)}",
                ]
            )
    heads = ["task", "judge", "agrees with a person", "two people agree", "difference"]
    return table([*heads, "stands in", "may / may not replace", "largest bias"], rows)


def _judged_tasks() -> list[tuple[str, Any]]:
    return [(name, found) for name, found in stored("judges").items() if isinstance(found, dict)]


def _limits(estimate: float, lower: float, upper: float) -> str:
    return f"{number(estimate)} [{number(lower)}, {number(upper)}]"


def next_labels() -> str:
    """Return what labels brought, by how they were bought."""
    rows = []
    for name, found in stored("next_labels")["studies"].items():
        for strategy, curve in found.items():
            row = [name, strategy]
            for key, places in (("error", 4), ("consensus", 3), ("resolution", 2)):
                cells = [cell[key]["mean"] for cell in curve.values() if key in cell]
                row.append(" / ".join(number(cell, places) for cell in cells) or "-")
            rows.append(row)
    labels = " / ".join(curve)
    heads = ("squared error", "majority right", "resolution")
    return table(["study", "bought", *(f"{head}, {labels} per item" for head in heads)], rows)


def set_coverage() -> str:
    """Return coverage and radius of sets that are asked to hold 90%."""
    rows = [
        [
            name,
            method,
            *(number(cells["0.9"][what]["mean"]) for what in ("coverage", "grown", "radius")),
        ]
        + [number(cells["0.95"][what]["mean"]) for what in ("coverage", "grown", "radius")]
        for name, methods in stored("set_coverage")["data"].items()
        for method, cells in methods.items()
    ]
    heads = [
        f"{what}, {level}"
        for level in ("90%", "95%")
        for what in ("coverage", "grown by .1", "radius")
    ]
    return table(["data, model", "method", *heads], rows)


def epistemic_gain() -> str:
    """Return what was predicted with the weak network, and what others gained."""
    result = stored("epistemic_gain")
    losses = result["log loss"]
    networks = [name for name in losses if name != "all 14"]
    rows = []
    for tenth in result["predicted epistemic"]:
        lowest = min(losses[name][tenth]["mean"] for name in networks)
        weak = losses[result["weak"]][tenth]["mean"]
        gain = result["gain of the strongest"][tenth]["mean"]
        figures = (
            result["predicted aleatoric"][tenth]["mean"],
            result["predicted epistemic"][tenth]["mean"],
            weak,
            gain,
            lowest,
            losses["all 14"][tenth]["mean"],
        )
        rows.append([tenth, *map(number, figures)])
    heads = ["predicted aleatoric", "predicted epistemic", f"log loss of {result['weak']}"]
    heads += ["gain of the strongest", "lowest log loss of any network", "log loss of all 14"]
    return table(["tenth", *heads], rows)


def epistemic_claim() -> str:
    """Return the sentence about what a better model gains."""
    result = stored("epistemic_gain")
    gain = result["gain of the strongest"]
    predicted = result["predicted epistemic"]
    first, last = (
        [number(each[tenth]["mean"], 2) for each in (gain, predicted)] for tenth in ("1", "10")
    )
    return (
        "Epistemic uncertainty is what a better model gains: in the tenth of the CIFAR-10 images\n"
        "for which most is predicted with a weak network, the strongest of 14 gains "
        f"{last[0]} nats of {last[1]},\nwhere least is predicted {first[0]} of {first[1]}, and "
        "none goes below what is predicted to be aleatoric.\n"
    )


def label_sets() -> str:
    """Return coverage and size of sets of labels."""
    levels = {"0.8": "80%", "0.9": "90%", "0.95": "95%"}
    rows = [
        [name, method]
        + [number(cells[level][what]["mean"]) for level in levels for what in ("coverage", "size")]
        for name, methods in stored("set_coverage")["labels"].items()
        for method, cells in methods.items()
    ]
    heads = [f"{what}, {level}" for level in levels.values() for what in ("coverage", "size")]
    return table(["data, model", "prediction", *heads], rows)


def label_sets_claim() -> str:
    """Return the sentences about the size of sets of labels."""
    methods = stored("set_coverage")["labels"]["CIFAR-10H, resnet18"]
    names = ("temperature, believed", "calibrated, believed", "calibrated, conformal")
    figures = [methods[name]["0.95"] for name in names]
    sizes = [f"{each['size']['mean']:.2f}" for each in figures]
    shares = [f"{each['coverage']['mean']:.1%}" for each in figures]
    balls = stored("set_coverage")["data"]["CIFAR-10H, resnet18"]["certified, k = 5"]["0.8"]
    radius, covered = number(balls["radius"]["mean"], 2), f"{balls['coverage']['mean']:.1%}"
    return (
        "On CIFAR-10H (resnet18, five labels per image, 95% asked), sets hold "
        f"{shares[2]} of new labels with\n{sizes[2]} classes on average. Taking the likeliest "
        f"classes of the calibrated mean until they sum to 95%\nneeds {sizes[1]} classes and holds "
        f"{shares[1]}; after temperature scaling {sizes[0]} classes, {shares[0]}.\nCertified balls "
        f"of 80% have a mean radius of {radius} and hold {covered} of the label distributions.\n"
    )


def budget_split() -> str:
    """Return planned and measured errors of the splits."""
    rows = []
    for name, found in stored("budget_split")["data"].items():
        for method in METHODS:
            measured = found["measured"][method]
            planned = dict(found["planned"][method])
            best = planned.pop("best")
            least = min(measured, key=lambda k: measured[k]["mean"])
            rows.append([f"{name}, {found['budget']:,} labels", f"{method}, measured"])
            rows[-1] += [*(spread(cell) for cell in measured.values()), least]
            rows.append(["", f"{method}, planned", *map(number, planned.values()), best])
    return table(["data", "nats", *(f"k = {k}" for k in measured), "best k"], rows)


def head_convergence() -> str:
    """Return the distances to the truth by items."""
    result = stored("head_convergence")["curves"]
    rows = [
        [head, key.replace("_", " "), *(number(cells[key]["mean"]) for cells in curve.values())]
        for head, curve in result.items()
        for key in next(iter(curve.values()))
    ]
    return table(["head", "", *(f"{int(n):,} items" for n in result["MixtureHead"])], rows)


def items() -> str:
    """Return the resolution of both methods by row, what was asked and what all labels reach."""
    result = stored("items")
    methods = ("cells", "items", "all labels")
    rows = []
    for title, found in result["rows"].items():
        row = [title]
        for kind in ("alone", "own"):
            cells, own, whole = (number(found[m][kind]["resolution"]["mean"]) for m in methods)
            missed = "" if found["reached"][kind] else " (missed)"
            row += [cells, f"**{own}**{missed}", number(found["asked"][kind]), whole]
        gained, asked = item_gains(found)
        rows.append([*row, f"{number(gained)} ({number(asked)})"])
    means = result["mean"]
    row = ["mean"]
    for kind in ("alone", "own"):
        cells, own, whole = (number(means[method][kind]) for method in methods)
        row += [cells, f"**{own}**", number(means["asked"][kind]), whole]
    gains = np.mean([item_gains(found) for found in result["rows"].values()], axis=0)
    row.append(f"{number(gains[0])} ({number(gains[1])})")
    heads = [
        f"{method}{own}"
        for own in ("", ", own labels")
        for method in ("cells", "items", "asked at least", "items, all labels")
    ]
    return table(["resolution", *heads, "gain over cells (asked)"], [*rows, row])


def item_gains(row: dict[str, Any]) -> tuple[float, float]:
    """Return what items gain over cells on the same halves, alone, and what was asked."""
    cells, items = (row[method]["alone"]["resolution"]["mean"] for method in ("cells", "items"))
    return items - cells, row["asked"]["alone"] - row["asked"]["cells before"]


def items_scores() -> str:
    """Return the other scores of both methods by row."""
    rows = []
    for title, found in stored("items")["rows"].items():
        row = [title]
        shown = (("alone", "snapshot score"), ("own", "snapshot score"), ("alone", "log loss"))
        for kind, key in shown:
            row += [number(found[method][kind][key]["mean"]) for method in ("cells", "items")]
        gaps = [
            found["items"][kind]["predictive less log loss"]["mean"] for kind in ("alone", "own")
        ]
        rows.append([*row, *map(signed, gaps)])
    heads = [
        "snapshot score, cells",
        "items",
        "cells, own labels",
        "items, own labels",
        "log loss, cells",
        "items",
        "predictive less log loss, items",
        "the same, own labels",
    ]
    return table(["nats per label", *heads], rows)


def prototypes() -> str:
    """Return the resolution of items, of prototypes, and of what held-out labels teach."""
    second = ("tilt", "Dirichlets", "both")
    shown = {"alone": ("regression", *second), "own": second}
    ours = stored("items")["rows"]
    rows = []
    for title, found in stored("prototypes")["rows"].items():
        row = [title]
        for kind, methods in shown.items():
            best = found["verdict"][kind]["best prototype"]
            row.append(f"**{number(ours[title]['items'][kind]['resolution']['mean'])}**")
            for method in methods:
                figure = number(found[kind][method]["mean"])
                row.append(f"*{figure}*" if method == best else figure)
            row.append(number(found[kind]["taught"]["mean"]))
        rows.append(row)
    heads = [
        f"{method}{', own labels' if kind == 'own' else ''}"
        for kind, methods in shown.items()
        for method in ("items", *methods, "taught")
    ]
    return table(["resolution", *heads], rows)


def halves() -> str:
    """Return what items reach on average, and on halves like those on which they were asked for."""
    rows = []
    for title, found in stored("halves")["rows"].items():
        row = [title]
        row.append(f"{number(found['cells before'])} ({number(found['cells'])})")
        row.append(f"{found['pairs as good for cells']:.0%}")
        for kind in ("alone", "own"):
            part = found[kind]
            reached = f"{number(part['there'])} -+ {number(part['spread'])}"
            row += [number(part["asked"]), f"**{reached}**", number(part["mean"])]
        rows.append(row)
    heads = ["cells there (on average)", "pairs as good for cells"]
    for kind in ("alone", "own labels"):
        heads += [f"asked, {kind}", f"items there, {kind}", f"on average, {kind}"]
    return table(["resolution", *heads], rows)


def panels() -> str:
    """Return by which part the predicted entropy of panels is off."""
    shown = ("plug-in of k labels", "cells", "items", "cells, Brier", "items, Brier")
    rows = [
        [
            title,
            found["people"],
            *(f"{found['relative error'][name]['mean']:+.1%}" for name in shown),
        ]
        for title, found in stored("panels")["sets"].items()
    ]
    return table(["relative error", "people", *shown], rows)


def label_pairs() -> str:
    """Return how often two labels are of each kind, predicted and observed."""
    kinds = ("both the likeliest", "one of them", "the same other", "two others")
    rows = []
    for title, found in stored("label_pairs")["sets"].items():
        for method in ("cells", "items"):
            said, seen = (
                {kind: number(found[name][kind]["mean"]) for kind in kinds}
                for name in (method, f"observed, {method}")
            )
            misplaced = number(found[method]["misplaced"]["mean"])
            rows.append([title, method, *(f"{said[k]} ({seen[k]})" for k in kinds), misplaced])
    return table(["predicted (observed)", "method", *kinds, "misplaced"], rows)


def signed(value: float, places: int = 3) -> str:
    """Return +.123 for 0.123."""
    return ("-" if value < 0 else "+") + number(abs(value), places)


def item_methods() -> str:
    """Return resolution, snapshot score and log loss of every method on every data set."""
    result = stored("item_methods")["data"]
    keys = ("resolution", "snapshot score", "log loss")
    methods = list(dict.fromkeys(name for data in result.values() for name in data["methods"]))
    rows = []
    for method in methods:
        row = [method]
        for data in result.values():
            found = data["methods"].get(method, {})
            row.append(
                " / ".join(number(found[key]["mean"]) if key in found else "-" for key in keys)
                if found
                else ""
            )
        rows.append(row)
    heads = [f"{name}, k = {data['k']}" for name, data in result.items()]
    return table(["resolution / snapshot score / log loss", *heads], rows)


def scales() -> str:
    """Return ordinal uncertainty and log loss given own labels, on scales."""
    rows = []
    for name, cases in stored("scales")["data"].items():
        for k, found in cases.items():
            uncertainty, losses = found["ordinal uncertainty"], found["log loss, own labels"]
            known = uncertainty["known"]["mean"]
            row = [f"{name}, k = {k}", number(known)]
            for method in ("cells", "items"):
                value = uncertainty[method]["mean"]
                row.append(f"{number(value)} ({100 * (value / known - 1):+.0f}%)")
            losses = {key: number(cell["mean"]) for key, cell in losses.items()}
            row += [losses[key] for key in ("frequencies", "cells", "items")]
            rows.append([*row, losses.get("known", "")])
    heads = ["ordinal uncertainty", "cells", "items", "log loss, own labels: frequencies"]
    return table(["data, labels per item", *heads, "cells", "items", "one who knows"], rows)


def first_order() -> str:
    """Return the log loss of the mean beside that of its rivals."""
    rows = []
    for name, found in stored("first_order")["sets"].items():
        losses = {key: number(cell["mean"]) for key, cell in found["log loss"].items()}
        losses["items"] = f"**{losses['items']}**"
        gap = found["predictive less log loss"]["items"]["mean"]
        claims = [
            f"{100 * found['excess']:+.1f}%" + ("" if found["within 1%"] else " (missed)"),
            signed(gap) + ("" if found["within .03"] else " (missed)"),
        ]
        rows.append([name, *losses.values(), *claims])
    heads = [*losses, "items against the best rival", "predictive less log loss"]
    return table(["log loss, nats", *heads], rows)


def worlds_bias() -> str:
    """Return the biases in worlds of known truth."""
    result = stored("worlds")
    rows = []
    for world, found in result["bias"].items():
        for method in ("cells", "items"):
            row = [world if method == "cells" else "", method]
            for k, cells in found[method].items():
                biases = " / ".join(signed(cell["mean"], 2) for cell in cells.values())
                missed = method == "items" and not found["reached"][k]
                row.append(biases + (" (missed)" if missed else ""))
            rows.append(row)
    heads = [f"k = {k} (asked: {number(least, 2)})" for k, least in result["asked"]["bias"].items()]
    return table(["bias: aleatoric / epistemic / predictive, nats", "method", *heads], rows)


def hard_use() -> str:
    """Return how often promises fail in worlds that are hard on them."""
    result = stored("hard_use")
    rows = []
    for name, found in result["rates"].items():
        rates = [number(rate) for rate in found["missed"].values()]
        rest = [number(found["together"]), number(found["p below .1"])]
        rows.append([name, *rates, *rest, number(found["uniform, KS p"], 2)])
    quantities = list(found["missed"])
    heads = ["share of misses", *quantities, "any of ten cells", "p below .1", "uniform (KS p)"]
    levels = result["level sets"]
    said = (
        f"Of {levels['of']:,} level sets in studies of 200 items, nine in ten of them nearly "
        f"certain, a share of {number(levels['missed'])} was missed.\n"
    )
    return f"{table(heads, rows)}\n{said}"


def left_open() -> str:
    """Return how far worlds with the same labels differ."""
    result = stored("left_open")
    rows = []
    for world, found in result["worlds"].items():
        row = [world, number(found["truth"], 2)]
        for k in result["asked"]:
            cell = found[k]
            ends = f"{number(cell['least'], 2)} to {number(cell['most'], 2)}"
            row.append(f"{ends} ({number(cell['half'], 2)})")
        rows.append(row)
    heads = [f"k = {k}" for k in result["asked"]]
    return table(["aleatoric uncertainty, nats", "truth", *heads], rows)


def worlds_errors() -> str:
    """Return how the error of cell averages falls with the items."""
    rows = []
    for world, found in stored("worlds")["error of cell averages"].items():
        for method in ("cells", "items"):
            errors = [number(cell["mean"], 4) for cell in found[method].values()]
            slope = signed(found["slope"][method], 2)
            rows.append([world if method == "cells" else "", method, *errors, slope])
    sizes = (f"{int(size):,} items" for size in found["items"])
    return table(["error of cell averages, nats", "method", *sizes, "slope"], rows)


def random_worlds() -> str:
    """Return how far outputs are off in worlds drawn at random, by classes and number of items."""
    cells = {
        f"{kind}, {int(size):,} items": found
        for kind, worlds in stored("random_worlds")["kinds"].items()
        for size, found in worlds["items"].items()
    }
    losing = "share that loses 1% more than the best rival"
    excess = [found["excess"] for found in cells.values()]
    rows = [
        ["log loss against the best rival", *(_around(cell, percent=True) for cell in excess)],
        [losing, *(f"{found[losing]:.0%}" for found in cells.values())],
    ]
    for name in ("predictive less log loss", "aleatoric less truth"):
        for kind in (name, f"{name}, own labels"):
            rows.append([kind, *(_around(found[kind]) for found in cells.values())])
    for kind in ("explained", "explained, own labels"):
        title = kind.replace("explained", "differences in disagreement explained")
        rows.append([title, *(number(found[kind]["mean"], 2) for found in cells.values())])
    return table(["mean over the worlds (middle 90%)", *cells], rows)


def single_items() -> str:
    """Return how far each item's numbers are from the right ones, of methods side by side."""
    rows = []
    for world, found in stored("single_items")["worlds"].items():
        of_world = [
            (RECALIBRATED, found["logistic"]["alone"]),
            *((method, found[method]["alone"]) for method in ("cells", "items")),
            *((f"{method}, own labels", found[method]["own"]) for method in ("cells", "items")),
        ]
        for place, (method, figures) in enumerate(of_world):
            parts = [_error_of_part(figures, part) for part in PARTS]
            divergence = number(figures["divergence"]["mean"])
            rows.append([world if place == 0 else "", method, divergence, *parts])
    return table(["predictor", "method", "divergence of the mean", *PARTS], rows)


PARTS = ("predictive", "aleatoric", "epistemic")
RECALIBRATED = "logistic regression, all entropy aleatoric"


def _error_of_part(figures: Any, part: str) -> str:
    """Return the bias, the error of single items, and how much of their differences it explains."""
    bias, error, explained = (
        figures[f"{part}, {figure}"]["mean"] for figure in ("bias", "error", "explained")
    )
    known = number(explained, 2) if explained > 0 else "none"
    return f"{signed(bias)}, {number(error)}, {known}"


def _around(cell: dict[str, float], *, percent: bool = False) -> str:
    """Return a mean, and in brackets the limits of the middle."""
    mean, lower, upper = (
        f"{cell[name]:+.1%}" if percent else signed(cell[name], 2 if name != "mean" else 3)
        for name in ("mean", "lower", "upper")
    )
    return f"{mean} ({lower} to {upper})"


# Of the repository's README and of the documentation

PANELS = {
    "CIFAR-10H, resnet18": "CIFAR-10H, resnet18 (about 50 labels per image)",
    "ChaosNLI-S, roberta-base_0": "ChaosNLI-S, RoBERTa (100 labels per pair)",
    "FER+ test, residual network": "FER+ test, residual network (10 labels per face)",
}


def accuracy_per_label() -> str:
    """Return the errors of both methods on three data sets, and what they are."""
    result = stored("label_efficiency")
    labels = ("2", "5", "10")
    rows = []
    for name, found in result["data"].items():
        paper = [number(found["empirical"][k]["mean"]) for k in labels]
        ours = [f"**{number(found[DEFAULT][k]['mean'])}**" for k in labels]
        rows.append([PANELS[name], "the paper's", *paper, number(found["floor"]["mean"])])
        rows.append(["", "hocal", *ours, ""])
    words = (
        "Error of the aleatoric uncertainty in nats "
        f"(mean of {result['resamplings']} resamplings; the\n"
        "floor is the paper's method with *all* labels of the calibration half):\n\n"
    )
    heads = ["data, model", "method", *(f"{k} labels" for k in labels), "floor"]
    return words + table(heads, rows)


def labels_saved() -> str:
    """Return what two labels are worth, and how wide certified intervals are, in words."""
    needed = [
        int(found["labels the empirical method needs instead"][DEFAULT]["2"].split()[-1])
        for found in stored("label_efficiency")["data"].values()
    ]
    widths = stored("certificate_widths")["by labels"]
    five, ten = (number(widths[k]["width"]["shannon aleatoric"]["mean"], 2) for k in ("5", "10"))
    range_ = number(widths["5"]["paper"]["shannon"]["mean"], 2)
    return (
        "Two labels per item do what the paper's method needs "
        f"{min(needed)} to {max(needed)} for.\n"
        "The 95% interval for the aleatoric uncertainty of a cell with 200 or more items is\n"
        f"{five} nats wide at five labels and {ten} at ten on CIFAR-10H, "
        f"of a possible {range_}; the\n"
        "paper's bound says nothing there.\n"
    )


def ensemble_claim() -> str:
    """Return what an ensemble misses, in words."""
    result = stored("cifar10h_table")
    misses = [
        result["without labels"]["eight seeds"]["items"]["mean"],
        result["mean entropy"],
        result["post-hoc"]["resnet18"]["cells"]["2"]["items"]["mean"],
    ]
    ensemble, none, two = (number(error, 2) for error in misses)
    return (
        "On CIFAR-10H, eight networks that differ in their seed miss the aleatoric uncertainty of\n"
        f'their cells by {ensemble} nats, where saying "none" misses it by {none} '
        "and two labels per image\n"
        f"by {two} (`experiments/README.md`).\n"
    )


def agreement_coverage() -> str:
    """Return how often intervals of kappa hold the truth, and how wide they are."""
    result = stored("agreement")
    rows = []
    for share, sizes in result.items():
        if share == "resamplings":
            continue
        for n_items, found in sizes.items():
            holds = [f"{found[name]['holds']:.1%}" for name in ("hocal", "bootstrap")]
            widths = [number(found[name]["width"], 2) for name in ("hocal", "bootstrap")]
            rows.append([f"{float(share):.0%}", n_items, *holds, *widths])
    heads = ["ambiguous", "items", "hocal holds", "bootstrap holds", "hocal's width", "bootstrap's"]
    return table(heads, rows)


def careless() -> str:
    """Return the share of planted careless workers that lists find."""
    result = stored("careless")
    methods = list(result["CF_amt"]["random"]["5%"]["found"])
    meant = {"copies": ("hocal, pairs",)}  # the lists that are made for a kind
    alone = ("hocal, excess", "hocal, class use")
    rows = []
    for name, kinds in result.items():
        for kind, shares in kinds.items():
            if kind == "as it was":
                continue
            for share, run in shares.items():
                ours = meant.get(kind, alone)
                names = [m for m in methods if m in ours or not m.startswith("hocal")]
                cells = [run["found"].get(m) if m in names else None for m in methods]
                shown = ["" if cell is None else f"{cell['mean']:.0%}" for cell in cells]
                rows.append([name, kind, share, *shown, f"{run['told']['mean']:.0%}"])
    return table(["table", "kind", "careless", *methods, "a finding names"], rows)


def careless_aleatoric() -> str:
    """Return disagreement with careless workers, and without those who were found."""
    rows = []
    for name, kinds in stored("careless").items():
        before = kinds["as it was"]
        clean = [number(before[part]) for part in ("disagreement", "without dissenters")]
        for kind in ("random", "one class"):
            for share, run in kinds[kind].items():
                parts = ("with careless", "without dissenters", "without careless")
                cells = [number(run["aleatoric"][part]["mean"]) for part in parts]
                rows.append([name, kind, share, *clean, *cells])
    heads = ["as it was", "as it was, without its dissenters", "with careless"]
    last = ["without dissenters", "without the careless"]
    return table(["table", "kind", "careless", *heads, *last], rows)


def refusal_areas() -> str:
    """Return areas under the curves of risk against coverage."""
    data = stored("refusal")["data"]
    names = list(data["CIFAR-10H 14 nets"]["areas"])
    rows = []
    for name, found in data.items():
        for curve in ("answer or refuse", "person or refuse", "answer or ask"):
            cells = [found["areas"].get(score) for score in names]
            areas = [number(cell[curve]["mean"], 4) if cell else "-" for cell in cells]
            rows.append([name, curve, *areas])
    return table(["data", "decision", *names], rows)


def refusal_costs() -> str:
    """Return what rules cost per item."""
    data = stored("refusal")["data"]
    scores = list(data["CIFAR-10H 14 nets"]["areas"])
    names = ["rule", "expected", *scores, "answer", "ask"]
    shares = ["share answer", "share ask", "share refuse"]
    rows = []
    for name, found in data.items():
        for prices, cost in found["costs"].items():
            cells = [number(cost[each]["mean"], 4) if each in cost else "-" for each in names]
            taken = " / ".join(f"{cost[share]['mean']:.0%}" for share in shares)
            rows.append([name, prices, *cells, taken])
    heads = ["data", "prices", *names[:2], *(f"two cuts: {score}" for score in scores)]
    heads += ["always answer", "always ask", "rule: answers / asks / refuses"]
    return table(heads, rows)


def refusal_intervals() -> str:
    """Return what half of the items prove about costs."""
    data = stored("refusal")["data"]
    names = list(data["CIFAR-10H 14 nets"]["intervals"])
    rows = []
    for name, found in data.items():
        cells = [[number(value) for value in found["intervals"][each]] for each in names]
        rows.append([name, *(f"{mean} ({low} to {high})" for mean, low, high in cells)])
    return table(["data", *names], rows)


def unfamiliar() -> str:
    """Return how well scores tell images of other kinds."""
    areas = stored("unfamiliar")["areas"]
    kinds = list(areas["confidence"])
    rows = [
        [name, *(number(found[kind]["mean"]) for kind in kinds)] for name, found in areas.items()
    ]
    return table(["score", *kinds], rows)


def unfamiliar_parts() -> str:
    """Return what is said about images of other kinds, on average."""
    parts = stored("unfamiliar")["parts"]
    names = list(parts["CIFAR-10"])
    rows = [
        [kind, *(number(found[name]["mean"]) for name in names)] for kind, found in parts.items()
    ]
    return table(["images", *names], rows)


Maker = Callable[[], str]

TABLES: tuple[Maker, ...] = (
    claims,
    xray,
    cifar10h,
    cifar10h_baselines,
    cifar10h_networks,
    entropy_histograms,
    galleries,
    calibration_errors,
    ferplus_learning,
    ferplus_post_hoc,
    binary_regression_epsilon,
    binary_regression_errors,
    items,
    items_scores,
    prototypes,
    halves,
    panels,
    label_pairs,
    item_methods,
    scales,
    first_order,
    worlds_bias,
    left_open,
    hard_use,
    worlds_errors,
    random_worlds,
    single_items,
    label_efficiency,
    certificate_widths,
    limit_widths,
    entropy_limits,
    ranking,
    monitor,
    monitor_parts,
    monitor_streams,
    judges,
    judges_stand_in,
    refusal_areas,
    refusal_costs,
    refusal_intervals,
    unfamiliar,
    unfamiliar_parts,
    next_labels,
    set_coverage,
    label_sets,
    epistemic_gain,
    budget_split,
    head_convergence,
    agreement_coverage,
    careless,
    careless_aleatoric,
)

DOCUMENTS: dict[Path, tuple[Maker, ...]] = {
    HERE / "README.md": TABLES,
    ROOT / "README.md": (accuracy_per_label, labels_saved, epistemic_claim),
    ROOT / "docs" / "two-labels.md": (ensemble_claim,),
    ROOT / "docs" / "guarantees.md": (limit_widths_of_coins,),
    ROOT / "docs" / "guides" / "prediction-sets.md": (label_sets_claim,),
}


def fill(text: str, makers: Iterable[Maker]) -> str:
    """Return a document with everything between its comments written anew."""
    for make in makers:
        start = f"<!-- {make.__name__} -->\n"
        end = f"<!-- end of {make.__name__} -->\n"
        before, rest = text.split(start)
        _, after = rest.split(end)
        text = before + start + make() + end + after
    return text


if __name__ == "__main__":
    for document, makers in DOCUMENTS.items():
        document.write_text(fill(document.read_text(encoding="utf-8"), makers), encoding="utf-8")
