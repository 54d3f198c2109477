"""``sla-ledger agreements import``: drafts of agreements from OpenSLO documents and Sloth specs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from ledger.cli.agreement_reading import read_agreement
from ledger.cli.output import ProgressLine, note, print_json, print_table
from ledger.errors import BadInput
from ledger.ingest.agreement_yaml import MAX_BYTES
from ledger.ingest.slo_draft import Draft, make_drafts
from ledger.ingest.slo_import import Source, read_slos
from ledger.ingest.slo_model import Note, NoteKind
from ledger.wiring.files import replace_file

ENDINGS = (".yaml", ".yml", ".json")
MAX_FILES = 1_000
MAX_ALL_BYTES = 16 * 1024 * 1024
_HEADER = """\
# A draft made from service level objectives: nobody signed it, and names that say REPLACE have to be replaced.
# The report of `sla-ledger agreements import` says what was assumed and what has no counterpart.
"""

EPILOG = """\b
Exit codes:
  0  drafts were made; the report says what to replace and to confirm
  1  the documents are valid, and no SLO is among them
  2  a document is not valid, refers to one that is not there, or says what no agreement can say; nothing was written
"""


@click.command("import", epilog=EPILOG)
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--template", type=click.Path(path_type=Path), help="An agreement: parties, keys, money and dates of it.")
@click.option("--out", type=click.Path(path_type=Path), help="Write the draft here; several drafts go to a new folder.")
@click.option(
    "--keep-references", is_flag=True, help="Report references to alerts that are not there, instead of refusing them."
)
@click.option("--json", "as_json", is_flag=True, help="Print drafts and report as JSON.")
def import_slos(path: Path, template: Path | None, out: Path | None, keep_references: bool, as_json: bool) -> None:
    """Make agreement drafts of OpenSLO (v1alpha, v1, v2alpha) documents or Sloth specs.

    PATH is a file, or a folder whose .yaml, .yml and .json files are read as one set. SLOs of one service and one time
    window become one draft. Without --template, parties, keys and money are placeholders.
    """
    imported = read_slos(_sources(path), keep_references=keep_references)
    drafts = make_drafts(imported.slos, None if template is None else read_agreement(template).document)
    written = _write(drafts, out) if out is not None and drafts else []
    if as_json:
        print_json(
            {
                "slos": len(imported.slos),
                "drafts": [
                    {
                        "service": draft.document["service"]["name"],
                        "slos": [slo.name for slo in draft.slos],
                        "agreement": draft.document,
                        "report": [found.as_document() for found in draft.notes],
                    }
                    for draft in drafts
                ],
                "report": [found.as_document() for found in imported.notes],
                "written": [str(file) for file in written],
            }
        )
    else:
        _print(drafts, imported.notes)
        for file in written:
            note(f"wrote {file}")
    if not drafts:
        note(f"{path}: the documents are valid, and no SLO is among them")
        raise click.exceptions.Exit(1)


def _sources(path: Path) -> Iterator[Source]:
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS and file.is_file())
        if not files:
            raise BadInput(f"{path}: holds no file that ends in {', '.join(ENDINGS)}")
        if len(files) > MAX_FILES:
            raise BadInput(f"{path}: {len(files)} files; at most {MAX_FILES} are imported at once")
    progress, size = ProgressLine(), 0
    for number, file in enumerate(files):
        try:
            with file.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise BadInput(f"{file}: cannot be read: {error.strerror}", file=str(file)) from error
        size += len(data)
        if size > MAX_ALL_BYTES:
            raise BadInput(f"{path}: more than {MAX_ALL_BYTES} bytes; import fewer files at once")
        # What is yielded is read before the next one is asked for.
        yield Source(str(file), data)
        progress("reading", number + 1, len(files))
    progress.clear()


def _write(drafts: Sequence[Draft], out: Path) -> list[Path]:
    if out.exists():
        raise BadInput(f"{out}: is there already; a draft replaces no file", path=str(out))
    if len(drafts) == 1:
        files = [out]
    else:
        out.mkdir(parents=True)
        files = [out / f"{number:02}-{draft.name}.yaml" for number, draft in enumerate(drafts, 1)]
    for file, draft in zip(files, drafts, strict=True):
        replace_file(file, (_HEADER + draft_text(draft)).encode())
    return files


def draft_text(draft: Draft) -> str:
    """A draft in YAML."""
    return str(yaml.safe_dump(_plain(draft.document), sort_keys=False, allow_unicode=True, width=120))


def _plain(value: Any) -> Any:
    """A copy without shared parts, which YAML would write as anchors."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _print(drafts: Sequence[Draft], others: Sequence[Note]) -> None:
    for draft in drafts:
        terms = draft.document
        click.echo(
            f"draft for {terms['service']['name']}: periods of {terms['period']} from {terms['effective']['from']} "
            f"({terms['timezone']}), windows of {terms['window']}"
        )
        print_table(
            ("objective", "method", "indicator", "target"),
            [(each["id"], each["method"], each["indicator"], f"{each['target']} %") for each in terms["objectives"]],
        )
        click.echo()
    notes = [found for draft in drafts for found in draft.notes] + list(others)
    for kind, heading in (
        (NoteKind.CONFIRM, "To confirm: what a query means is known to its author alone"),
        (NoteKind.ASSUMED, "Assumed"),
        (NoteKind.PLACEHOLDER, "To replace: no SLO says it"),
        (NoteKind.NO_COUNTERPART, "Without a counterpart in an agreement"),
    ):
        chosen = list(dict.fromkeys(found for found in notes if found.kind is kind))
        if chosen:
            click.echo(f"{heading}:")
            for found in chosen:
                where = f"{found.place.file}: {found.place.field}: " if found.place.field else ""
                click.echo(f"  {where}{found.value}\n    {found.message}")
            click.echo()
