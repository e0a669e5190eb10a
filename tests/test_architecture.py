"""The house has one direction: rooms import rooms above, files the files above in their room."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

# From what everything leans on to what leans on everything.
ROOMS: dict[str, list[str]] = {
    "_base": [
        "typing",
        "errors",
        "interval",
        "plurals",
        "shares",
        "files",
        "fingerprints",
        "frames",
        "notebook",
        "pictures",
        "saved_arrays",
        "scalar_checks",
        "validation",
    ],
    "uncertainty": [
        "array_operations",
        "concave_maximum",
        "generalised_entropy",
        "own_entropy",
        "entropy",
        "distinct_counts",
        "snapshots",
        "logarithms",
        "segments",
        "mixture_storage",
        "mixture_checks",
        "likelihood",
        "atoms",
        "mixture_constructors",
        "mixtures",
        "moment_tensors",
        "flows",
        "distance",
        "decomposition",
        "moments",
        "loss_decomposition",
        "equivalence",
        "label_sets",
        "sets",
        "credal_sets",
        "credible_limits",
    ],
    "cells": ["protocol", "given_cells", "partitions", "crossed", "statistics"],
    "guarantees": [
        "promises",
        "effective_items",
        "anytime",
        "dyadic",
        "orders",
        "betting",
        "entropy_boxes",
        "joint_limits",
        "deadline",
        "fixed_number",
        "shift_evidence",
        "means",
        "bernstein_proofs",
        "bernstein_programs",
        "snapshot_marginals",
        "bernstein",
        "polynomials",
        "distance_bounds",
        "bounds",
        "binary_moments",
        "entropy_ranges",
        "samples",
        "item_pairs",
        "mean_region",
        "dealt_cells",
        "entropy_bets",
        "learnt_guesses",
        "item_statistics",
        "cell_advice",
        "cell_means",
        "cell_uncertainty",
        "lasting_limits",
        "cell_error",
        "cell_folds",
        "certificate_result",
        "certificates",
        "certified_sets",
    ],
    "annotations": [
        "tables",
        "spellings",
        "judgements",
        "counting",
        "first_labels",
        "answers",
        "predictions",
        "cell_counting",
        "exports",
        "independence",
    ],
    "annotations.exports": [
        "files",
        "protocol",
        "label_studio",
        "argilla",
        "doccano",
        "prodigy",
        "crowds",
        "potato",
        "lewidi",
        "registry",
        "result",
        "reading",
    ],
    "annotations.independence": [
        "plain_values",
        "votes",
        "vote_layout",
        "permutations",
        "exchangeability",
        "drift",
        "poisson_binomial",
        "annotator_effects",
        "annotator_excess",
        "closest_annotators",
        "annotator_table",
        "coefficients",
        "agreement_limits",
        "left_out_annotators",
        "agreement_result",
        "agreement_of_people",
        "design_effect",
        "label_numbers",
        "findings",
        "annotation_check",
        "diagnostics",
    ],
    "calibration.first_order": [
        "temperature",
        "multinomial",
        "strengths",
        "feature_scale",
        "columns",
        "confusion",
        "recalibration",
    ],
    "calibration.by_cell": [
        "pool_atoms",
        "pool",
        "tilts",
        "deconvolution",
        "empirical",
        "fitting",
        "class_order",
        "prediction",
    ],
    "calibration.by_item": [
        "components",
        "component_draws",
        "likeness",
        "top_shares",
        "atom_weights",
        "atoms",
        "mixtures",
        "decomposition",
        "columns",
        "disagreement",
        "penalised_fits",
        "temperatures",
        "weights",
        "shapes",
        "settling",
        "anchors",
        "stacking",
        "model",
        "fitting",
    ],
    "calibration": [
        "first_order",
        "by_cell",
        "by_item",
        "labels_alone",
        "dirichlet_entropies",
        "label_components",
        "item_posteriors",
        "against_truth",
        "evaluation",
        "scores",
        "inputs",
        "levels",
        "reference",
        "seen_items",
        "set_calibration",
        "item_fit",
        "predictor",
        "certification",
        "calibrator_state",
        "calibrator_fitting",
        "calibrator_predictions",
        "calibrator",
        "cross_fitting",
        "training_items",
        "classifier",
        "saved_header",
        "saved_parts",
        "saved_partition",
        "persistence",
    ],
    "decisions": [
        "losses",
        "selective",
        "refusal",
        "irreducible",
        "gains",
        "comparison",
        "class_shares",
        "standing_in",
        "planning",
        "budget",
        "label_gains",
        "purchases",
        "familiarity",
        "watched",
        "monitor_state",
        "monitor_bets",
        "monitoring",
    ],
    "datasets": [
        "sources",
        "time_limit",
        "download",
        "fetching",
        "npz",
        "crowd",
        "real",
        "ferplus",
        "images",
        "judged",
        "imagenet16h",
        "judges",
        "lewidi",
        "worlds",
        "digits",
    ],
    "torch": [
        "counts",
        "layers",
        "checkpoint",
        "prediction",
        "outputs",
        "shannon_kernel",
        "tensor_operations",
        "decomposition",
        "label_metric",
        "metrics",
        "heads",
        "pairs",
        "baselines",
        "training",
        "classifier",
    ],
    "plot": [
        "canvas",
        "inputs",
        "predicted",
        "observed",
        "certificate",
        "uncertainty_map",
        "label_curve",
        "mixture",
        "prediction_set",
        "coverage",
        "entropy_distribution",
        "reliability",
        "evidence",
        "risk_coverage",
    ],
    "report": [
        "schema",
        "label_schema",
        "media",
        "independence",
        "words",
        "headroom_words",
        "label_words",
        "item_words",
        "item_values",
        "cell_facts",
        "study",
        "confusions",
        "contrast",
        "contrast_words",
        "items",
        "parts",
        "planning",
        "headroom",
        "classes",
        "trust",
        "cells",
        "label_study",
        "label_summary",
        "charts",
        "markdown",
        "label_markdown",
        "page",
        "label_page",
        "summary",
        "report",
    ],
    "cli": [
        "messages",
        "options",
        "option_groups",
        "files",
        "outputs",
        "engines",
        "tables",
        "side_tables",
        "predictions",
        "exports",
        "items",
        "caution",
        "models",
        "left_out",
        "own_labels",
        "partition_options",
        "fit_tables",
        "fit",
        "predict",
        "evaluate",
        "monitor",
        "compare",
        "check",
        "labels",
        "report",
        "plan",
        "next",
        "data",
        "demonstration",
        "demo",
        "app",
    ],
}
MODULES = [f"{room}.{file}" for room, files in ROOMS.items() for file in files]
LATE = {
    "uncertainty.decomposition": {"torch"}
}  # `decompose` hands tensors to the extra, once somebody has made one
SOURCE = Path(__file__).parents[1] / "src" / "hocal"


def imported(module: str) -> set[str]:
    """Return what a module imports from hocal, anywhere, without the leading `hocal.`."""
    path = SOURCE / f"{module.replace('.', '/')}.py"
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return {name.removeprefix("hocal.") for name in names if name.startswith("hocal.")}


def room_of(name: str) -> str:
    return name.split(".")[0]


def test_every_file_has_a_place_in_its_room() -> None:
    files = {
        path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".")
        for path in SOURCE.rglob("*.py")
    }

    assert {name for name in files if not name.endswith("__init__")} == {
        module for module in MODULES if module not in ROOMS
    }


def test_the_house_has_twelve_rooms() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}

    assert folders == {room_of(room) for room in ROOMS}
    assert len(folders) == 12


@pytest.mark.parametrize("module", [module for module in MODULES if module not in ROOMS])
def test_a_room_imports_only_rooms_above_it(module: str) -> None:
    order = list(dict.fromkeys(map(room_of, ROOMS)))
    above = set(order[: order.index(room_of(module)) + 1]) | LATE.get(module, set())

    assert {room_of(name) for name in imported(module)} & set(order) <= above


@pytest.mark.parametrize("module", [module for module in MODULES if module not in ROOMS])
def test_a_file_imports_only_files_above_it_in_its_room(module: str) -> None:
    below = MODULES[MODULES.index(module) :]
    inside = {name for name in imported(module) if room_of(name) == room_of(module)}

    assert not inside & set(below)


@pytest.mark.parametrize(
    "room", [room for room in ROOMS if not room.startswith(("_", "torch", "plot", "calibration."))]
)
def test_a_room_lists_its_public_names_in_order(room: str) -> None:
    names = import_module(f"hocal.{room}").__all__

    assert names == sorted(names)
