"""Kill processes with signal 9 at random moments, and tell what they leave behind.

Run as a program of one thread, which forks what it kills: that costs no start of an interpreter.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pyarrow import parquet

import hocal
from command_line import study_tables
from file_server import FileServer
from hocal.cli import main as run_command
from hocal.datasets.fetching import obtain
from hocal.datasets.sources import DataFile

Work = Callable[[], object]
CONTENT = np.random.default_rng(3).bytes(400_000)  # seven chunks of a download


class Finding(NamedTuple):
    """What a series of kills left."""

    n_killed: int  # processes that the signal met before their end
    problems: list[str]  # all that is neither an old nor a new file


def start(work: Work) -> int:
    """Do some work in a process of its own, and return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            work()
        code = 0
    except SystemExit as exit_:
        code = int(exit_.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def finish(work: Work) -> float:
    """Do some work in a process of its own that is left alone; return the seconds it took."""
    began = time.perf_counter()
    status = os.waitpid(start(work), 0)[1]
    if status:
        raise RuntimeError(f"{work} ended with status {status}")
    return time.perf_counter() - began


def warm(work: Work) -> float:
    """Do some work, and import here what it imports: other processes need not do it one by one."""
    with tempfile.NamedTemporaryFile("w+") as names:

        def tell() -> None:
            try:
                work()
            finally:
                Path(names.name).write_text("\n".join(sys.modules))

        seconds = finish(tell)
        for name in names.read().split():
            with contextlib.suppress(Exception):
                import_module(name)
    return seconds


def kill(child: int, seconds: float) -> bool:
    """Kill a process after some seconds; tell whether it was still there."""
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)  # one that ended is there until it is waited for
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def kill_each(begin: Callable[[], int], seconds: float, n_kills: int, seed: int) -> Iterator[bool]:
    """Start and kill so many processes within so many seconds; tell of each if it was killed.

    Those that end too early do not count, and the next gets less time.
    """
    generator = np.random.default_rng(seed)
    n_killed = 0
    for _ in range(10 * n_kills):
        killed = kill(begin(), generator.uniform(0, seconds))
        yield killed
        n_killed += killed
        seconds *= 1.0 if killed else 0.8
        if n_killed == n_kills:
            return


def look_for_leftovers(folder: Path, *expected: str) -> list[str]:
    """Return what is in a folder beside what is expected, as a problem."""
    left = sorted({entry.name for entry in folder.iterdir()} - set(expected))
    return [f"left over: {left}"] if left else []


def overwrite(works: tuple[Work, Work], target: Path, n_kills: int, seed: int) -> Finding:
    """Kill what writes one of two files over the other; every time one of both must be there."""
    contents = set()
    seconds = 0.0
    for work, do in zip(works, (warm, finish), strict=True):
        seconds = do(work)
        contents.add(target.read_bytes())
    problems = [] if len(contents) == 2 else ["the two files do not differ"]
    chosen = cycle(works)
    n_killed = 0
    for killed in kill_each(lambda: start(next(chosen)), seconds, n_kills, seed):
        n_killed += killed
        if target.read_bytes() not in contents:
            problems.append("the file is neither the old nor the new one")
    finish(works[0])  # takes away what the killed ones left
    return Finding(n_killed, problems + look_for_leftovers(target.parent, target.name))


def commands(source: Path, target: Path, *arguments: str) -> tuple[Work, Work]:
    """Return a command on each of two studies."""

    def on(number: int) -> Work:
        names = [each.replace("@", str(source / str(number))) for each in arguments]
        return lambda: run_command([*names, "-o", str(target), "--force"])

    return on(0), on(1)


def make_studies(source: Path) -> None:
    """Write the tables and models of two studies."""
    generator = np.random.default_rng(4)
    for number in ("0", "1"):
        folder = source / number
        folder.mkdir()
        p = generator.dirichlet(np.ones(3), size=40)
        tables = study_tables(p, generator.multinomial(3, p))
        for name in ("labels", "predictions"):
            parquet.write_table(tables[name], folder / f"{name}.parquet")
        warm(commands(source, folder / "model", *FIT)[int(number)])


FIT = ("fit", "@/labels.parquet", "@/predictions.parquet", "--item", "item", "--label", "label",
       "--n-slices", "2", "--method", "empirical")  # fmt: skip
PREDICT = ("predict", "@/model", "@/predictions.parquet")
REPORT = ("report", "@/model", "@/predictions.parquet", "--no-planning")


def saves(source: Path, target: Path, n_times: int) -> tuple[Work, Work]:
    """Return what saves each of two models so many times."""
    models = [hocal.load(source / number / "model") for number in ("0", "1")]

    def save(number: int) -> Work:
        return lambda: [hocal.save(models[number], target) for _ in range(n_times)]

    return save(0), save(1)


def kill_saves(source: Path, folder: Path, n_kills: int, seed: int) -> Finding:
    """Kill what saves a model over and over."""
    target = folder / "model.hocal"
    return overwrite(saves(source, target, 5), target, n_kills, seed)


def kill_two_writers(source: Path, folder: Path, n_kills: int, seed: int) -> Finding:
    """Let two save to the same file, and kill one; the other must not notice."""
    target = folder / "model.hocal"
    works = saves(source, target, 20)
    seconds = 0.0
    contents = set()
    for work in works:
        seconds = finish(work)
        contents.add(target.read_bytes())
    problems = []
    n_killed = 0
    others: list[int] = []

    def begin() -> int:
        others.append(start(works[1]))
        return start(works[0])

    for killed in kill_each(begin, seconds, n_kills, seed):
        n_killed += killed
        if os.waitpid(others.pop(), 0)[1]:
            problems.append("the other writer failed")
        if target.read_bytes() not in contents:  # whoever wrote last
            problems.append("the file is of neither")
    finish(works[0])
    return Finding(n_killed, problems + look_for_leftovers(folder, target.name))


def resume(work: Work, target: Path, n_kills: int, seed: int, *others: str) -> Finding:
    """Kill what can be resumed, start it again, and in the end let it finish."""
    seconds = finish(work)
    expected = target.read_bytes()
    problems = []
    n_killed = 0

    def begin() -> int:
        if target.exists():  # it was finished: from the beginning, then
            for entry in target.parent.iterdir():
                entry.unlink()
        return start(work)

    for killed in kill_each(begin, seconds, n_kills, seed):
        n_killed += killed
        if target.exists() and target.read_bytes() != expected:
            problems.append("another or half a file under the final name")
    finish(work)
    if target.read_bytes() != expected:
        problems.append("another result")
    return Finding(n_killed, problems + look_for_leftovers(target.parent, target.name, *others))


@contextmanager
def slow_server() -> Iterator[str]:
    """Serve the content slowly from a process of its own, and give its address."""
    server = FileServer()
    server.files["file.bin"] = CONTENT
    server.behaviours = ["slowly"] * 10_000
    child = start(server.serve_forever)
    try:
        yield server.url
    finally:
        kill(child, 0)
        server.server_close()


def kill_downloads(_: Path, folder: Path, n_kills: int, seed: int) -> Finding:
    """Kill downloads, which go on where they were."""
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    with slow_server() as url:
        file = DataFile("file.bin", len(CONTENT), sha256, f"{url}/file.bin")
        return resume(lambda: obtain(file, data_home=folder), folder / "file.bin", n_kills, seed)


def kill_training(_: Path, folder: Path, n_kills: int, seed: int) -> Finding:
    """Kill a training run with checkpoints; the weights at its end must be the same."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from hocal.torch import MixtureHead, train

    torch.set_num_threads(1)
    inputs = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 4))).float()
    data = TensorDataset(inputs, torch.tensor([[2, 0], [1, 1]]).repeat(32, 1))

    def fit() -> None:
        torch.manual_seed(0)
        head = MixtureHead(2, 2, in_features=4)
        loader = DataLoader(data, 8, shuffle=True, generator=torch.Generator().manual_seed(1))
        history = train(
            head, loader, loss=head.loss, epochs=8, validation=loader, device="cpu",
            random_state=2, checkpoint=folder / "run.safetensors",
        )  # fmt: skip
        weights = b"".join(tensor.numpy().tobytes() for tensor in head.state_dict().values())
        outcome = hashlib.sha256(weights + repr(history).encode()).digest()
        (folder / "outcome").write_bytes(outcome)

    fit()  # here, so that what torch imports at its first step is there for all children
    (folder / "run.safetensors").unlink()
    return resume(fit, folder / "outcome", n_kills, seed, "run.safetensors")


def by_command(arguments: tuple[str, ...], name: str) -> Callable[..., Finding]:
    """Return kills of a command that writes a file of this name."""

    def attack(source: Path, folder: Path, n_kills: int, seed: int) -> Finding:
        target = folder / name
        return overwrite(commands(source, target, *arguments), target, n_kills, seed)

    return attack


ATTACKS: dict[str, Callable[[Path, Path, int, int], Finding]] = {
    "save": kill_saves,
    "two writers": kill_two_writers,
    "fit": by_command(FIT, "model.hocal"),
    "predict": by_command(PREDICT, "predicted.parquet"),
    "report": by_command(REPORT, "report.html"),
    "fetch": kill_downloads,
    "train": kill_training,
}


def main(n_kills: int, seed: int, *names: str) -> dict[str, Any]:
    """Return what each attack found."""
    findings = {}
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        make_studies(source)
        for name in names:
            folder = Path(scratch) / name
            folder.mkdir()
            findings[name] = ATTACKS[name](source, folder, n_kills, seed)._asdict()
    return findings


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])))
