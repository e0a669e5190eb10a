"""Worlds with known label distributions, and real label counts of people with their sources."""

from hocal.datasets.crowd import CrowdLabels, load_crowd
from hocal.datasets.digits import make_ambiguous_digits
from hocal.datasets.download import DownloadError
from hocal.datasets.ferplus import FERPlus, load_ferplus
from hocal.datasets.fetching import FileStatus, fetch, list_files
from hocal.datasets.imagenet16h import ImageNet16H, load_imagenet16h
from hocal.datasets.images import JPEGImages, load_cifar10_images
from hocal.datasets.judged import JudgedItems
from hocal.datasets.judges import load_judges
from hocal.datasets.lewidi import load_lewidi
from hocal.datasets.real import (
    ChaosNLI,
    Features,
    LabelledItems,
    Predictions,
    load_chaosnli,
    load_cifar10_features,
    load_cifar10_softmax,
    load_cifar10h,
)
from hocal.datasets.sources import Source
from hocal.datasets.worlds import World, make_binary_regression, make_mixture_world, make_xray

__all__ = [
    "ChaosNLI",
    "CrowdLabels",
    "DownloadError",
    "FERPlus",
    "Features",
    "FileStatus",
    "ImageNet16H",
    "JPEGImages",
    "JudgedItems",
    "LabelledItems",
    "Predictions",
    "Source",
    "World",
    "fetch",
    "list_files",
    "load_chaosnli",
    "load_cifar10_features",
    "load_cifar10_images",
    "load_cifar10_softmax",
    "load_cifar10h",
    "load_crowd",
    "load_ferplus",
    "load_imagenet16h",
    "load_judges",
    "load_lewidi",
    "make_ambiguous_digits",
    "make_binary_regression",
    "make_mixture_world",
    "make_xray",
]
