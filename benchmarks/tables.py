"""Write the tables of documents from the stored results, between the comments that name them.

    python benchmarks/tables.py

The documents are README.md here and docs/comparison.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results"


def stored(name: str) -> Any:
    """Return a result file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table in Markdown."""
    titles = [str(title) for title in head]
    lines = [titles, ["---"] * len(titles), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def duration(seconds: float | None) -> str:
    """Return a time in the unit that suits it; a dash for a method that stopped earlier."""
    if seconds is None:
        return "-"
    value, unit = (
        (seconds, "s")
        if seconds >= 1
        else (1e3 * seconds, "ms")
        if seconds >= 1e-3
        else (1e6 * seconds, "us")
    )
    return f"{figure(value)} {unit}"


def figure(value: float | None) -> str:
    """Return about two digits of a ratio."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def memory(n_bytes: float | None) -> str:
    """Return a memory in MB or GB."""
    if n_bytes is None:
        return "-"
    if n_bytes < 1e6:
        return "under 1 MB"
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def count(n: int) -> str:
    """Return a number with separators."""
    return f"{n:,}"


def best_peer(seconds: dict[str, float]) -> float:
    """Return the time of the fastest method that is not hocal's."""
    return min(value for name, value in seconds.items() if not name.startswith("hocal"))


def transport_pairs() -> str:
    """Return the distances between two samples of snapshots."""
    result = stored("wasserstein")
    rows = [
        [
            row["n_classes"],
            row["k"],
            count(row["n_items"]),
            " and ".join(map(count, row["atoms"])),
            duration(best_peer(row["seconds"])),
            duration(row["seconds"]["hocal"]),
            figure(row["times_faster"]),
            figure(row["times_faster_in_the_worst_draw"]),
            memory(row["peak_bytes"]["hocal"]),
        ]
        for part in ("one_pair", "one_pair_of_two_classes", "many_classes")
        for row in result[part]
    ]
    heads = [
        "classes",
        "k",
        "items",
        "distinct",
        "best peer",
        "hocal",
        "times faster",
        "worst draw",
        "memory",
    ]
    return table(heads, rows)


def transport_cells() -> str:
    """Return the distances in a hundred cells."""
    result = stored("wasserstein")
    parts = (
        "small_cells",
        "small_cells_of_two_classes",
        "large_cells",
        "large_cells_of_two_classes",
    )
    rows = [
        [
            row["n_classes"],
            count(row["items_a_cell"]),
            row["cell_sizes"],
            row["k"],
            duration(best_peer(row["seconds"])),
            duration(row["seconds"]["hocal"]),
            figure(row["times_faster"]),
        ]
        for part in parts
        for row in result[part]
    ]
    return table(
        ["classes", "items per cell", "sizes", "k", "best peer", "hocal", "times faster"], rows
    )


def transport_lines() -> str:
    """Return the distances of weighted mixtures of two classes."""
    rows = [
        [
            count(row["n_mixtures"]),
            count(row["n_atoms"]),
            duration(row["seconds"]["pot_line"]),
            duration(row["seconds"]["scipy_line"]),
            duration(row["seconds"]["hocal"]),
            figure(row["times_faster"]),
        ]
        for row in stored("wasserstein")["weighted_lines"]
    ]
    return table(
        ["pairs", "atoms", "POT `emd2_1d`", "SciPy", "hocal", "times faster than the better"], rows
    )


def decomposition() -> str:
    """Return the decompositions of arrays and tensors, in times of a read."""
    result = stored("decomposition")
    rows = []
    for case in result["cases"] + result["sizes"]:
        relative = case["time_relative_to_read"]
        peers = {
            name: x
            for name, x in relative.items()
            if name.startswith("torch") and name.endswith("1_thread")
        }
        both = {
            name: x
            for name, x in relative.items()
            if name.startswith("torch") and name.endswith("2_threads")
        }
        rows.append(
            [
                " x ".join(map(count, case["shape"])),
                case["dtype"],
                duration(case["read_seconds"]),
                figure(relative["hocal"]),
                figure(relative["hocal_from_mixtures"]),
                figure(relative["hocal_tensor_1_thread"]),
                figure(relative["hocal_tensor_2_threads"]),
                figure(min(peers.values())),
                figure(min(both.values())),
                figure(relative.get("probly")),
            ]
        )
    heads = [
        "items x members x classes",
        "dtype",
        "read",
        "hocal",
        "mixtures given",
        "tensor",
        "tensor, 2 threads",
    ]
    return table([*heads, "best PyTorch", "best PyTorch, 2 threads", "probly"], rows)


def decomposition_memory() -> str:
    """Return the memory that decompositions need, in times of their input."""
    cases = stored("decomposition")["sizes"]
    names = list(cases[0]["peak_memory_in_inputs"])
    rows = [
        [f"{case['megabytes']:,.0f} MB", case["dtype"]]
        + [figure(case["peak_memory_in_inputs"].get(name)) for name in names]
        for case in cases
    ]
    return table(
        ["input", "dtype", *(name.removesuffix("_1_thread").replace("_", " ") for name in names)],
        rows,
    )


def decomposition_gpu() -> str:
    """Return the decompositions on a GPU."""
    rows = [
        [
            " x ".join(map(count, row["shape"])),
            row["dtype"],
            memory(row["bytes"]),
            duration(row["milliseconds"]["read"] / 1e3),
            duration(row["milliseconds"]["peer"] / 1e3),
            duration(row["milliseconds"]["hocal"] / 1e3),
            figure(row["relative_to_the_read"]),
            figure(row["times_faster_than_peer"]),
            duration(row["milliseconds_from_idle"]["hocal"] / 1e3),
            *(memory(row["peak_bytes"][name]) for name in ("peer", "hocal")),
        ]
        for row in stored("decomposition_gpu")["rows"]
    ]
    heads = [
        "items x members x classes",
        "dtype",
        "input",
        "read",
        "torch-uncertainty",
        "hocal",
        "hocal / read",
    ]
    return table([*heads, "times faster", "hocal, GPU idle before", "its memory", "hocal's"], rows)


def deconvolution_pool() -> str:
    """Return the pool against plain expectation maximisation."""
    rows = [
        [
            row["data"],
            row["n_classes"],
            row["k"],
            count(row["n_snapshots"]),
            count(row["n_atoms"]),
            duration(row["hocal"]["seconds"]),
            f"{row['hocal']['gap']:.0e}",
            *(_slow(row, short) for short in row["em"]),
        ]
        for row in stored("deconvolution")["em"]
    ]
    heads = ["data", "classes", "k", "snapshots", "atoms", "hocal", "its gap"]
    return table(
        [*heads, *(f"times faster than EM to {short}" for short in ("1e-6", "1e-8"))], rows
    )


def _slow(row: dict[str, Any], short: str) -> str:
    found = row["em"][short]
    faster = figure(row["times_faster"][short])
    over = "" if found["reached"] else "over "
    return f"{over}{faster} ({count(found['steps'])} steps)"


def deconvolution_optimum() -> str:
    """Return the pool against a convex solver."""
    rows = [
        [
            row["data"],
            row["n_classes"],
            row["k"],
            count(row["n_snapshots"]),
            duration(row["seconds"]["cvxpy"]),
            duration(row["seconds"]["hocal"]),
            figure(row["times_faster"]),
            f"{row['hocal_ahead_in_nats_an_item']:.0e}",
        ]
        for row in stored("deconvolution")["cvxpy"]
    ]
    heads = [
        "data",
        "classes",
        "k",
        "snapshots",
        "CVXPY",
        "hocal",
        "times faster",
        "hocal's optimum is better by",
    ]
    return table(heads, rows)


def deconvolution_fit() -> str:
    """Return whole fits from counted labels."""
    rows = [
        [
            count(row["n_items"]),
            row["n_classes"],
            row["k"],
            count(row["n_filled_cells"]),
            count(row["n_distinct"]),
            duration(row["seconds"]),
            memory(row["peak_bytes"]),
        ]
        for row in stored("deconvolution")["fit"]
    ]
    return table(["items", "classes", "k", "cells", "distinct snapshots", "time", "memory"], rows)


CALIBRATORS = (
    "hocal_empirical",
    "hocal_cells",
    "netcal",
    "sklearn_isotonic",
    "sklearn_sigmoid",
)


ITEM_METHODS = ("hocal", "isotonic", "boosting")


def calibration() -> str:
    """Return fits and predictions of calibrators."""
    result = stored("calibration")
    rows = []
    for row in [*result["rows"], *result["many_classes"], result["ragged"]]:
        data = [
            count(row["n_items"]),
            row["n_classes"],
            "1 to 10" if row is result["ragged"] else 5,
        ]
        for job in ("fit", "predict_proba", "decompose"):
            times = [row["seconds"].get(name, {}).get(job) for name in CALIBRATORS]
            rows.append([*data, job, *map(duration, times)])
            data = ["", "", ""]
    names = ["hocal, empirical", "hocal, cells", "netcal", "isotonic", "sigmoid"]
    return table(["items", "classes", "labels per item", "job", *names], rows)


def calibration_memory() -> str:
    """Return the memory of fits."""
    result = stored("calibration")
    rows = [
        [
            count(row["n_items"]),
            row["n_classes"],
            memory(row["input_bytes"]),
            *(memory(row["peak_bytes"].get(name, {}).get("fit")) for name in CALIBRATORS),
        ]
        for row in [*result["rows"], *result["many_classes"]]
    ]
    names = ["hocal, empirical", "hocal, cells", "netcal", "isotonic", "sigmoid"]
    return table(["items", "classes", "input", *names], rows)


def items() -> str:
    """Return fits and predictions of single items, beside peers that do a part of it."""
    result = stored("items")
    rows = []
    for row in [*result["rows"], *result["many_classes"]]:
        data = [count(row["n_items"]), count(row["n_classes"])]
        for job in ("fit", "predict"):
            times = [row["seconds"][name][job] for name in ITEM_METHODS]
            peak = memory(row["peak_bytes"]["hocal"][job])
            rows.append([*data, job, *map(duration, times), peak])
            data = ["", ""]
    head = ["items", "classes", "job", *ITEM_METHODS, "memory of hocal"]
    told = ", ".join(f"{name} explains {share:.0%}" for name, share in result["explained"].items())
    n_items = count(result["rows"][0]["n_items"])
    return f"{table(head, rows)}\nOf the true disagreement of {n_items} fresh items {told}.\n"


def annotation_counts() -> str:
    """Return the counting of labels."""
    result = stored("annotations")
    rows = []
    for row in [*result["count"], *result["count_other"]]:
        seconds = row["seconds"]
        faster = row["times_faster_than_crowdkit"]
        rows.append(
            [
                count(row["n_labels"]),
                row["n_classes"],
                "text" if row["text"] else "integers",
                *(
                    figure(row["ratio_to_group_by"].get(engine))
                    for engine in ("duckdb", "polars", "pandas")
                ),
                duration(seconds["hocal_on_duckdb"]),
                memory(row["peak_bytes"]["hocal_on_duckdb"]),
                duration(seconds.get("crowdkit")),
                figure(faster.get("hocal_on_pandas")),
                duration(seconds.get("cleanlab")),
                duration(seconds.get("hocal_on_wide_pandas")),
            ]
        )
    heads = [
        "labels",
        "classes",
        "kind",
        "DuckDB",
        "polars",
        "pandas",
        "time on DuckDB",
        "its memory",
        "crowd-kit",
    ]
    return table([*heads, "hocal on pandas is faster by", "cleanlab", "hocal on its table"], rows)


def annotation_cells() -> str:
    """Return the statistics of cells."""
    rows = [
        [
            count(row["n_labels"]),
            duration(row["seconds"]["group_by"]),
            duration(row["seconds"]["hocal"]),
            figure(row["ratio"]),
            memory(row["peak_bytes"]["hocal"]),
        ]
        for row in stored("annotations")["cells"]
    ]
    return table(["labels", "group-by", "`cell_statistics`", "ratio", "memory"], rows)


def sizes() -> str:
    """Return time and memory of every operation on large data."""
    return _size_table([])


def size_limits() -> str:
    """Return the same for people who ask what happens beyond."""
    return _size_table(["beyond"])


# Where more than time and memory grows with the data.
GROWS = "time and memory grow with the items"
BEYOND = {
    "predict_mixture": "refused above 250 million numbers, with how many items to list at a time",
    "summarise and page": "10,000 items are measured, fewer with many classes",
    "calibration_error": "cells are compared with fewer draws each",
    "next_labels": "fewer labels ahead are exact",
    "plan_budget": "grows with the budget, not with the items",
    "certify": "time grows with filled cells, some milliseconds each",
    "wasserstein": "refused above 25 million distances between two mixtures",
    "Monitor.update": "items are watched in turn; memory stays",
}


def _size_table(more: list[str]) -> str:
    """Return one row for each operation and two columns for each size."""
    found = stored("sizes")["rows"]
    places = list(dict.fromkeys((row["n_items"], row["n_classes"]) for row in found))
    names = list(dict.fromkeys(row["operation"] for row in found))
    by_place = {(row["operation"], row["n_items"], row["n_classes"]): row for row in found}
    rows = []
    for name in names:
        cells = [_size_entry(by_place.get((name, *place))) for place in places]
        beyond = [BEYOND.get(name.split(",")[0], GROWS)] if more else []
        rows.append([f"`{name}`" if '"' in name else name, *cells, *beyond])
    heads = [f"{count(n_items)} x {count(n_classes)}" for n_items, n_classes in places]
    return table(["operation", *heads, *more], rows)


def _size_entry(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if "refused" in row or "stopped" in row:
        return "refused" if "refused" in row else str(row["stopped"])
    about = "about " if row.get("profiled") else ""
    return f"{about}{duration(row['seconds'])}, {memory(row['bytes'])}"


def imports() -> str:
    """Return what starting costs."""
    rows = [
        [f"`{name}`", duration(seconds)] for name, seconds in stored("imports")["seconds"].items()
    ]
    return table(["program", "time"], rows)


# Of docs/comparison.md


def ratios(values: Iterable[float]) -> str:
    """Return the range of ratios in words."""
    found = sorted(values)
    low, high = figure(found[0]), figure(found[-1])
    return low if low == high else f"{low} to {high}"


def comparison() -> str:
    """Return how much faster hocal is than its peers, one computation per row."""
    rows = [
        *_compare_transport(),
        *_compare_decomposition(),
        *_compare_fits(),
        *_compare_counting(),
    ]
    return table(["computation", "peer", "hocal is"], rows)


def _compare_transport() -> list[list[str]]:
    result = stored("wasserstein")
    pair = {row["k"]: figure(row["times_faster"]) for row in result["one_pair"]}
    large, small, lines = (
        ratios(row["times_faster"] for row in result[part])
        for part in ("large_cells", "small_cells", "one_pair_of_two_classes")
    )
    many = max(result["weighted_lines"], key=lambda row: row["n_mixtures"])
    return [
        [
            "W1 between samples of 2,000 snapshots, ten classes",
            "POT's `emd2`",
            f"{pair[2]}, {pair[10]} and {pair[50]} times faster with 2, 10 and 50 labels per item",
        ],
        [
            "the same in 100 cells of 2,000 and of 50 items",
            "POT's `emd2`",
            f"{large} times and {small} times faster",
        ],
        ["W1 with two classes, one pair", "the faster of POT and SciPy", f"{lines} times as fast"],
        [
            f"W1 with two classes, {count(many['n_mixtures'])} pairs",
            "the faster of POT and SciPy",
            f"{figure(many['times_faster'])} times faster",
        ],
    ]


def _compare_decomposition() -> list[list[str]]:
    result = stored("decomposition")
    times = [case["time_relative_to_read"] for case in result["cases"] + result["sizes"]]
    tensors = ratios(time["torch_uncertainty_1_thread"] / time["hocal"] for time in times)
    probly = ratios(time["probly"] / time["hocal"] for time in times if "probly" in time)
    large = [
        row
        for row in stored("decomposition_gpu")["rows"]
        if row["dtype"] == "float32" and row["bytes"] >= 4.8e8
    ]
    faster = ratios(row["times_faster_than_peer"] for row in large)
    passes = ratios(row["relative_to_the_read"] for row in large)
    return [
        [
            "parts of an ensemble's uncertainty, arrays, one thread",
            "torch-uncertainty, probly",
            f"{tensors} and {probly} times faster",
        ],
        [
            "the same on an H200",
            "torch-uncertainty's expression",
            f"{faster} times faster from half a gigabyte on in float32, "
            f"at {passes} times one pass over memory",
        ],
    ]


def _compare_fits() -> list[list[str]]:
    solver = stored("deconvolution")["cvxpy"]
    apart = max(abs(row["hocal_ahead_in_nats_an_item"]) for row in solver)
    million = next(row for row in stored("calibration")["rows"] if row["n_items"] == 1_000_000)
    seconds = {
        name: jobs["fit"] + jobs["predict_proba"] for name, jobs in million["seconds"].items()
    }

    def against(peer: str) -> str:
        faster = (
            figure(seconds[peer] / seconds[f"hocal_{method}"]) for method in ("empirical", "cells")
        )
        return "{} times as fast (empirical), {} times (cells)".format(*faster)

    return [
        [
            "maximum likelihood of the pool",
            "CVXPY with Clarabel",
            f"{ratios(row['times_faster'] for row in solver)} times faster, "
            f"same optimum to {apart:.0e} nats",
        ],
        [
            "calibrating 1,000,000 items, fit and predict",
            "scikit-learn, isotonic",
            against("sklearn_isotonic"),
        ],
        ["the same", "netcal, histogram binning", against("netcal")],
    ]


def _compare_counting() -> list[list[str]]:
    sizes = stored("annotations")["count"]
    slower = ratios(
        row["ratio_to_group_by"][engine] for row in sizes for engine in ("duckdb", "polars")
    )
    votes = ratios(
        row["times_faster_than_crowdkit"]["hocal_on_pandas"]
        for row in sizes
        if row["n_labels"] >= 1_000_000 and row["times_faster_than_crowdkit"]
    )
    fewest, most = (count(of(row["n_labels"] for row in sizes)) for of in (min, max))
    return [
        [
            f"counting labels of a table, {fewest} to {most} labels",
            "the plain group-by of DuckDB or polars",
            f"{slower} times its time, checks included",
        ],
        [
            "the same on pandas, 1,000,000 labels and more",
            "crowd-kit's MajorityVote",
            f"{votes} times faster",
        ],
    ]


Maker = Callable[[], str]

TABLES: tuple[Maker, ...] = (
    transport_pairs,
    transport_cells,
    transport_lines,
    decomposition,
    decomposition_memory,
    decomposition_gpu,
    deconvolution_pool,
    deconvolution_optimum,
    deconvolution_fit,
    calibration,
    calibration_memory,
    items,
    annotation_counts,
    annotation_cells,
    sizes,
    imports,
)

DOCUMENTS: dict[Path, tuple[Maker, ...]] = {
    HERE / "README.md": TABLES,
    ROOT / "docs" / "comparison.md": (comparison,),
    ROOT / "docs" / "limits.md": (size_limits,),
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
