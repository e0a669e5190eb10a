"""What is shipped: files of wheel and source archive, metadata, installing without extras."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path
from typing import NamedTuple

import pytest

import hocal

ROOT = Path(__file__).parents[1]

# What a first user does, with nothing installed but the dependencies.
SMOKE = """
import importlib.util
import hocal
from hocal.datasets import make_mixture_world

extras = ("torch", "matplotlib", "duckdb", "typer", "pyspark", "jinja2")
assert not any(map(importlib.util.find_spec, extras))
world = make_mixture_world(300, 3, random_state=0)
calibrator = hocal.SnapshotCalibrator().fit(world.predictions, world.draw(3, random_state=1))
hocal.save(calibrator, "model.hocal")
parts = hocal.load("model.hocal").decompose(world.predictions)
assert abs(parts.predictive - parts.aleatoric - parts.epistemic).max() < 1e-9
assert calibrator.certify().table()
assert hocal.wasserstein(world.mixtures[:1], world.mixtures[:1]).max() < 1e-9
"""


class Built(NamedTuple):
    """A wheel and a source archive, as {file: content}, and where they are."""

    wheel: Path
    archive: Path
    wheel_files: dict[str, bytes]
    archive_files: set[str]

    def read(self, name: str) -> str:
        """Return a file of the wheel's metadata."""
        return self.wheel_files[f"hocal-{hocal.__version__}.dist-info/{name}"].decode("utf-8")

    @property
    def metadata(self) -> Message:
        """The core metadata."""
        return email.message_from_string(self.read("METADATA"))


def build(source: Path, folder: Path) -> Built:
    """Build both from a checkout, as `python -m build` does but in this environment."""
    code = (
        "import sys; from hatchling.build import *; "
        "build_wheel(sys.argv[1]); build_sdist(sys.argv[1])"
    )
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1735000000"}
    subprocess.run(
        [sys.executable, "-c", code, str(folder)], cwd=source, env=environment, check=True
    )
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as inside:
        wheel_files = {name: inside.read(name) for name in inside.namelist()}
    with tarfile.open(archive) as packed:
        return Built(
            wheel, archive, wheel_files, {name.partition("/")[2] for name in packed.getnames()}
        )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build from the checkout."""
    pytest.importorskip("hatchling", reason="packages are built with hatchling")
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def source_files() -> set[str]:
    """Return the files of the package as they are in the checkout."""
    folder = ROOT / "src"
    found = (path for path in (folder / "hocal").rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix() for path in found if "__pycache__" not in path.parts
    }


def test_wheel_has_the_package_and_nothing_else(built: Built) -> None:
    assert {name for name in built.wheel_files if ".dist-info/" not in name} == source_files()


def test_wheel_has_types_templates_and_licence(built: Built) -> None:
    wanted = {
        "hocal/py.typed",
        "hocal/report/templates/page.html.j2",
        "hocal/report/templates/page.css",
    }
    licence = f"hocal-{hocal.__version__}.dist-info/licenses/LICENSE"

    assert {*wanted, licence} <= set(built.wheel_files)


def test_source_archive_holds_source_tests_and_their_papers_only(built: Built) -> None:
    top = {name.partition("/")[0] for name in built.archive_files}

    papers = {
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "pyproject.toml",
        "PKG-INFO",
        ".gitignore",
    }
    assert top - {""} == {"src", "tests", *papers}


def test_source_archive_holds_no_data(built: Built) -> None:
    suffixes = {Path(name).suffix for name in built.archive_files if name.startswith("tests/")}

    assert suffixes <= {"", ".py", ".json", ".txt"}


def test_source_archive_leaves_out_tests_of_what_it_has_not(built: Built) -> None:
    """Documents, experiments, stories, pictures and this file are about the repository."""
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}

    about = {"benchmarks", "documentation", "experiments", "package"}
    about |= {"install_line", "notebooks", "stories"}
    absent = {"tests/plot/test_pictures.py", *(f"tests/test_{name}.py" for name in about)}
    assert tests - built.archive_files == absent


def test_builds_are_reproducible(built: Built, tmp_path: Path) -> None:
    """What was built from the checkout is built again, byte for byte, from the source archive."""
    with tarfile.open(built.archive) as packed:
        packed.extractall(tmp_path / "source", filter="data")
    (tmp_path / "dist").mkdir()
    again = build(tmp_path / "source" / f"hocal-{hocal.__version__}", tmp_path / "dist")

    assert again.wheel.read_bytes() == built.wheel.read_bytes()
    assert again.archive.read_bytes() == built.archive.read_bytes()


def test_version_comes_from_the_package(built: Built) -> None:
    assert built.metadata["Version"] == hocal.__version__


def test_metadata_names_licence_python_and_readme(built: Built) -> None:
    metadata = built.metadata

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_extras_are_those_that_messages_name(built: Built) -> None:
    assert {"all", "app", "spark", "torch"} <= set(built.metadata.get_all("Provides-Extra", []))


def test_command_is_installed(built: Built) -> None:
    assert "hocal = hocal.cli:main" in built.read("entry_points.txt").splitlines()


@pytest.mark.slow
def test_wheel_without_extras_works_in_a_clean_environment(built: Built, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [programs / "python", "-m", "pip", "install", "--quiet", str(built.wheel)],
        check=True,
        env=environment,
    )

    subprocess.run([programs / "python", "-c", SMOKE], check=True, env=environment, cwd=tmp_path)
    command = subprocess.run(
        [programs / "hocal"], capture_output=True, text=True, check=False, env=environment
    )
    assert command.returncode == 2
    assert 'pip install "hocal[app]"' in command.stderr


def lower_bounds(*extras: str) -> dict[str, str]:
    """Return {name: oldest version} of the dependencies and of some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = sum(
        (project["optional-dependencies"][extra] for extra in extras), project["dependencies"]
    )
    return dict(
        found.groups() for need in needs if (found := re.match(r"([\w-]+)>=([\d.]+)", need))
    )


def test_oldest_versions_are_the_lower_bounds() -> None:
    pinned = dict(
        re.findall(
            r"^([\w-]+)==(\S+)$", (ROOT / "tests" / "oldest.txt").read_text(), flags=re.MULTILINE
        )
    )

    bounds = lower_bounds("app", "dev")
    assert pinned == {name: bounds[name] for name in pinned}
    assert pinned.keys() >= lower_bounds("app").keys()


def test_citation_has_the_version() -> None:
    assert f"\nversion: {hocal.__version__}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf-8"
    )


def test_workflow_runs_what_developers_run() -> None:
    assert "- run: .ci/run\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(
        encoding="utf-8"
    )
