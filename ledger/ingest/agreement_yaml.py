"""Agreement documents, and streams of foreign ones, in YAML, read so that nothing is guessed.

The shape of the document says what a scalar is, never YAML's own rules: ``target: 99.95`` stays the text
"99.95" (no float), ``from: 2023-01-01`` stays text (no timestamp), ``name: no`` stays text (no boolean).
Refused: repeated keys, anchors, aliases and tags, several documents, more than 256 KB, nesting deeper than 32.
JSON is read, too, being YAML. Every message names file, line and field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ledger.domain.schema import Either, Flag, Integer, ListOf, MapOf, Object, Shape
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.errors import DocumentInvalid

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_DOCUMENTS = 1_000

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,15})", re.ASCII)


Check = Callable[[Agreement], object]
"""A rule of another layer on a valid agreement; raises ``DocumentInvalid`` with the field."""


def load_agreement(path: Path, *, check: Check | None = None) -> Agreement:
    """Read and validate an agreement file; raises ``DocumentInvalid`` with file, line and field."""
    return parse_agreement(_bytes_of(path), str(path), check=check)


def load_document(path: Path) -> Any:
    """What an agreement file says, valid or not; raises ``DocumentInvalid`` where it is no YAML."""
    return parse_document(_bytes_of(path), str(path), AGREEMENT)[0]


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentInvalid(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error


def parse_agreement(data: bytes, name: str, *, check: Check | None = None) -> Agreement:
    """Validate agreement bytes; ``name`` stands for the file in messages."""
    document, lines = parse_document(data, name, AGREEMENT)
    try:
        agreement = Agreement.from_document(document)
        if check is not None:
            check(agreement)
        return agreement
    except DocumentInvalid as error:
        field = str(error.data.get("field", ""))
        line = line_of(field, lines)
        raise DocumentInvalid(f"{name}:{line}: {error.message}", file=name, line=line, field=field) from error


def parse_document(data: bytes, name: str, shape: Shape) -> tuple[Any, Mapping[str, int]]:
    """One YAML document as plain values typed by ``shape``, and the line of every field path.

    Checks only what YAML itself can get wrong; ``shape.check`` comes after. Raises ``DocumentInvalid``.
    """
    builder = _Builder(name)
    documents = builder.documents(_text_of(data, name), shape, most=1)
    return documents[0], builder.lines


def parse_stream(data: bytes, name: str) -> list[tuple[Any, Mapping[str, int]]]:
    """The documents of a stream (``---`` between them), each with the line of every field path.

    No shape is known, so every scalar is text as written and a plain empty one, ``~`` or ``null`` is None.
    Raises ``DocumentInvalid`` as ``parse_document`` does, and above ``MAX_DOCUMENTS``.
    """
    builder = _Builder(name)
    documents = builder.documents(_text_of(data, name), None, most=MAX_DOCUMENTS)
    return list(zip(documents, builder.lines_of_each, strict=True))


def line_of(field: str, lines: Mapping[str, int]) -> int:
    """The line of a field, or of the nearest part of the document around it where it is missing."""
    while field and field not in lines:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field, 1)


def _text_of(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise _refused(name, 1, "", f"the document has more than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(name, line, "", "not UTF-8 text") from error


class _Builder:
    """Builds plain values from YAML events, in one pass that stops at the depth bound."""

    def __init__(self, name: str) -> None:
        self.lines_of_each: list[dict[str, int]] = []
        self._name = name

    @property
    def lines(self) -> dict[str, int]:
        """Lines of the document that is being built."""
        return self.lines_of_each[-1]

    def documents(self, text: str, shape: Shape | None, most: int) -> list[Any]:
        try:
            return self._documents(yaml.parse(text, Loader=yaml.SafeLoader), shape, most)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            problem = " ".join(part for part in (error.context, error.problem) if part)
            raise _refused(self._name, mark.line + 1 if mark else 1, "", f"not YAML: {problem}") from error
        except yaml.YAMLError as error:
            position = getattr(error, "position", 0)
            line = text.count("\n", 0, position) + 1 if isinstance(position, int) else 1
            raise _refused(self._name, line, "", f"not YAML: {str(error).splitlines()[0]}") from error

    def _documents(self, events: Iterator[yaml.Event], shape: Shape | None, most: int) -> list[Any]:
        found: list[Any] = []
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if len(found) == most:
                    what = "a second document; a file holds one" if most == 1 else f"more than {most} documents"
                    raise self._fail(event, "", what)
                self.lines_of_each.append({})
            elif isinstance(event, yaml.NodeEvent):
                found.append(self._value(event, events, shape, "", 0))
        if not found:
            raise _refused(self._name, 1, "", "the document is empty")
        return found

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], shape: Shape | None, at: str, depth: int) -> Any:
        self._check_node(event, at, depth)
        self.lines[at] = _line(event)
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event, self._text(event, at), shape)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[Any] = []
            item_shape = shape.item if isinstance(shape, ListOf) else None
            while not isinstance(following := next(events), yaml.SequenceEndEvent):
                items.append(self._value(following, events, item_shape, f"{at}[{len(items)}]", depth + 1))
            return items
        members: dict[str, Any] = {}
        while not isinstance(following := next(events), yaml.MappingEndEvent):
            if not isinstance(following, yaml.ScalarEvent):
                raise self._fail(following, at, "a key must be plain text")
            self._check_node(following, at, depth)
            key = self._text(following, at)
            path = f"{at}.{key}" if at else key
            if key in members:
                raise self._fail(following, path, f"the key stands twice; first in line {self.lines[path]}")
            members[key] = self._value(next(events), events, _member_shape(shape, key), path, depth + 1)
            self.lines[path] = _line(following)
        return members

    def _check_node(self, event: yaml.Event, at: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._fail(event, at, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._fail(event, at, "anchors and aliases (& and *) are not allowed; write the value out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise self._fail(event, at, f"tags are not allowed (found {tag})")

    def _text(self, event: yaml.ScalarEvent, at: str) -> str:
        """A scalar's text. Pairs of surrogate escapes (as JSON writes them) become the character that they mean."""
        try:
            text: str = event.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise self._fail(event, at, "holds half of a surrogate pair, which is no character") from None
        return text

    def _fail(self, event: yaml.Event, at: str, message: str) -> DocumentInvalid:
        return _refused(self._name, _line(event), at, message)


def _scalar(event: yaml.ScalarEvent, value: str, shape: Shape | None) -> Any:
    """Text, unless the shape asks for a number or a flag and the scalar is a plain one of that kind."""
    if event.implicit[0]:
        if isinstance(shape, Integer) and _INTEGER.fullmatch(value):
            return int(value)
        if isinstance(shape, Flag) and value in ("true", "false"):
            return value == "true"
        if (shape is None or isinstance(shape, ListOf | MapOf | Object | Either)) and value in ("", "~", "null"):
            return None
    return value


def _member_shape(shape: Shape | None, key: str) -> Shape | None:
    if isinstance(shape, Object):
        return shape.required.get(key) or shape.optional.get(key)
    if isinstance(shape, MapOf):
        return shape.item
    if isinstance(shape, Either):
        # The kinds of one union agree on the type of a member they share.
        return next((found for kind in shape.shapes.values() if (found := _member_shape(kind, key))), None)
    return None


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark else 1


def _refused(name: str, line: int, field: str, message: str) -> DocumentInvalid:
    where = f"{field}: " if field else ""
    return DocumentInvalid(f"{name}:{line}: {where}{message}", file=name, line=line, field=field)
