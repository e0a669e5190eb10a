"""What README says to install is enough for what it shows, and for what it sends newcomers to."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)

# Runs code with nothing importable but the standard library and some modules.
ALONE = """
import importlib.abc, json, sys
allowed = set(json.loads(sys.argv[1])) | set(sys.stdlib_module_names) | {"hocal", "__main__"}

class Others(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        if root not in allowed and not root.startswith("_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Others())
exec(compile(sys.stdin.read(), "README", "exec"), {"__name__": "README"})
"""


def named_in_install_line() -> list[Requirement]:
    """Return what `pip install` of README names; the clone itself is hocal."""
    found = re.search(r"`pip install ([^`]+)`", README.read_text(encoding="utf-8"))
    assert found is not None
    words = found[1].replace('"', "").split()
    return [Requirement(re.sub(r"^\.", "hocal", word)) for word in words]


def declared(requirement: Requirement) -> Iterator[Requirement]:
    """Yield what a distribution needs; hocal's own needs are those of the checkout."""
    if requirement.name == "hocal":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        yield from map(Requirement, project["dependencies"])
        for extra in requirement.extras:
            yield from map(Requirement, project["optional-dependencies"][extra])
        return
    try:
        needs = requires(requirement.name) or []
    except PackageNotFoundError:
        return
    extras = requirement.extras or {""}
    for need in map(Requirement, needs):
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras):
            yield need


def installed_by(requirements: Iterable[Requirement]) -> set[str]:
    """Return the names of all distributions that come with some."""
    waiting = list(requirements)
    names: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if (name := canonicalize_name(requirement.name)) not in names or requirement.extras:
            new = [need for need in declared(requirement) if canonicalize_name(need.name) != name]
            names.add(name)
            waiting += [need for need in new if canonicalize_name(need.name) not in names]
    return names


def importable() -> set[str]:
    """Return the modules that the install line brings."""
    names = installed_by(named_in_install_line())
    modules = packages_distributions().items()
    return {module for module, homes in modules if names & set(map(canonicalize_name, homes))}


def imported(code: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(code)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    parts = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | parts}


def python_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return "\n".join("".join(cell["source"]) for cell in cells)
    return "\n".join(code for language, code in BLOCK.findall(text) if language == "python")


@pytest.mark.parametrize(
    "path",
    [README, ROOT / "docs" / "quickstart.md", *sorted(ROOT.glob("docs/tutorials/*.ipynb"))],
    ids=lambda path: path.name,
)
def test_the_install_line_brings_what_newcomers_import(path: Path) -> None:
    assert imported(python_of(path)) - importable() - set(sys.stdlib_module_names) == {"hocal"}


def test_the_install_line_brings_the_command_line() -> None:
    assert {"typer", "rich", "duckdb", "jinja2", "matplotlib"} <= importable()


def test_torch_and_spark_are_not_needed_for_the_examples_of_readme() -> None:
    assert not {"torch", "pyspark"} & importable()


@pytest.mark.slow
def test_the_example_of_readme_runs_with_what_the_install_line_brings() -> None:
    """With fewer digits; and the page, the plots and the command line are there."""
    code = python_of(README).replace("2000", "200")
    code += "\nimport hocal.cli, hocal.plot, hocal.report\nfrom hocal.cli import main\n"
    code += (
        "try:\n    main(['fit', '--help'])\nexcept SystemExit as left:\n    assert not left.code\n"
    )
    command = [sys.executable, "-c", ALONE, json.dumps(sorted(importable()))]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "aleatoric" in done.stdout
