"""The circuits' analyser: what circomspect passes over by itself is found, and a template it skips is noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.node_packages import ROOT, node

pytestmark = pytest.mark.slow

SOUND = """pragma circom 2.1.6;
include "comparators.circom";

template Lines(N) {
    signal input in[N];
    signal output out[N];
    signal free[N];
    for (var i = 0; i < N; i++) {
        free[i] <-- in[i] + 1;
        out[i] <== LessThan(20)([in[i], 7]);
    }
}
"""
# Two statements on one line are not rewritten, so circomspect leaves the template out.
SKIPPED = SOUND.replace("LessThan(20)([in[i], 7]);", "LessThan(20)([in[i], 7]); free[i] === 1;")

_REPORT = """
import sys
from pathlib import Path
sys.path.insert(0, "toolchain")
from lint import CannotRun, analyse
try:
    for each in analyse(Path(sys.argv[1]), Path(sys.argv[2])):
        print(each.rule, each.file, each.code, sep="|")
except CannotRun as error:
    sys.exit(str(error))
"""


def test_a_defect_in_a_loop_with_unnamed_components_is_found_and_a_skipped_template_is_an_error(tmp_path: Path) -> None:
    results = []
    for number, text in enumerate((SOUND, SKIPPED)):
        circuits, work = tmp_path / f"circuits{number}", tmp_path / f"work{number}"
        circuits.mkdir()
        work.mkdir()
        (circuits / "lines.circom").write_text(text)
        results.append(node(sys.executable, "-c", _REPORT, circuits, work, cwd=ROOT))
    found, skipped = results
    assert "less-than|lines.circom|in[i]" in found.stdout.splitlines(), found.stderr
    assert "signal assignment operator" in found.stdout
    assert skipped.returncode == 1
    assert "looked at 0 of 1 templates" in skipped.stderr
