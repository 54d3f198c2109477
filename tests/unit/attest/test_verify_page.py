"""Assembling the verification page: what it is made of, and what stops it. The page itself is tested in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.attest.proving.node_toolchain import NodeToolchain
from ledger.attest.verify_page import assembly, tables
from ledger.errors import ProverUnavailable


def packages(folder: Path, **versions: str) -> NodeToolchain:
    """A folder of packages that say their versions and are empty."""
    found = assembly.PACKAGES | versions
    for name, version in found.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "package.json").write_text(json.dumps({"version": version}))
    (folder / "snarkjs" / "build").mkdir()
    (folder / "snarkjs" / "build" / "snarkjs.min.js").write_text("var snarkjs = {};")
    return NodeToolchain(folder)


def test_a_missing_package_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(ProverUnavailable, match=r"npm ci --ignore-scripts"):
        assembly.assemble(NodeToolchain(tmp_path))


def test_a_package_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProverUnavailable, match=r"snarkjs 0\.7\.5 is installed, and the page is made with 0\.7\.6"):
        assembly.assemble(packages(tmp_path, snarkjs="0.7.5"))


def test_an_altered_snarkjs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProverUnavailable, match="it was altered"):
        assembly.assemble(packages(tmp_path))


def test_the_packages_are_those_of_the_lock() -> None:
    lock = json.loads((Path(__file__).parents[3] / "toolchain" / "package-lock.json").read_bytes())["packages"]
    assert {name: lock[f"node_modules/{name}"]["version"] for name in assembly.PACKAGES} == assembly.PACKAGES


@pytest.mark.parametrize("text", ["</SCRIPT>", "<!-- x", "<script>"])
def test_no_script_can_end_its_element(text: str) -> None:
    with pytest.raises(ValueError, match="HTML reads as markup"):
        assembly.inline(f'const x = "{text}";')


def test_places_inside_of_a_part_are_left_alone() -> None:
    assert assembly.filled("a{{one}}b{{two}}c", {"one": "{{two}}", "two": "2"}) == "a{{two}}b2c"


def test_every_bounded_decimal_says_its_bounds() -> None:
    found = tables.page_tables()
    text = json.dumps(found["schemas"])
    assert text.count('"decimalMaximum"') == text.count(json.dumps(tables.DECIMAL_PATTERN)) > 0
    assert found["schemas"]["bundle"]["properties"]["format"] == {"enum": ["sla-ledger/bundle/v1"]}


def test_zones_of_one_rule_share_it() -> None:
    zones = tables.page_tables()
    assert len(zones["zones"]) > len(zones["zoneRules"])
    assert zones["zones"]["Asia/Calcutta"] == zones["zones"]["Asia/Kolkata"]


def test_every_module_of_the_page_is_small() -> None:
    """The rule that scripts/sizes.py has for Python."""
    for path in sorted(assembly.STATIC.glob("*.js")):
        assert len(path.read_text().splitlines()) <= 400, path.name
