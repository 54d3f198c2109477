from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ledger.domain.schema import fail
from ledger.domain.terms.agreement import Agreement
from ledger.domain.terms.agreement_schema import AGREEMENT
from ledger.errors import DocumentInvalid
from ledger.ingest.agreement_yaml import MAX_BYTES, load_agreement, parse_agreement, parse_document
from tests.unit.domain.samples import EXAMPLES

TEXT = (EXAMPLES / "agreement.yaml").read_text()


def refused(text: str | bytes) -> DocumentInvalid:
    with pytest.raises(DocumentInvalid) as caught:
        parse_agreement(text.encode() if isinstance(text, str) else text, "a.yaml")
    assert caught.value.exit_code == 2
    assert re.match(r"a\.yaml:\d+: ", caught.value.message)
    return caught.value


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ('target: "99.95"', 'target: "0"', "objectives[0].target"),
        ('target: "99.95"', 'target: "100.1"', "objectives[0].target"),
        ('target: "99.95"', "target: NaN", "objectives[0].target"),
        ('target: "99.95"', "target: .nan", "objectives[0].target"),
        ('target: "95"', 'target: "95"\n    colour: red', "objectives[1].colour"),
        ("timezone: UTC", "timezone: Mars/Base", "timezone"),
        ("tier: gold", "tier: platinum", "tier"),
        ("tier: gold", "tier: gold\nextra: 1", "extra"),
        ('below: "99", credit', 'below: "99.99", credit', "compensation.rules[0].tiers.availability[1].below"),
        ("grace: PT72H", "grace: 72h", "grace"),
        ("exclusions: []", "exclusions: [{id: a, error_codes: [4.5], reason: r}]", "exclusions[0].error_codes[0]"),
        ("exclusions: []", "exclusions:", "exclusions"),
    ],
)
def test_the_message_names_file_line_and_field(old: str, new: str, field: str) -> None:
    text = TEXT.replace(old, new, 1)
    error = refused(text)
    assert error.data["field"] == field
    lines = text.splitlines()
    assert new.rsplit("\n", maxsplit=1)[-1].split(":", maxsplit=1)[0].strip(" {[") in lines[error.data["line"] - 1]
    assert field in error.message


def test_a_missing_member_is_reported_at_the_part_that_lacks_it() -> None:
    error = refused(TEXT.replace('    target: "95"\n', "", 1))
    assert error.data["field"] == "objectives[1].target"
    assert error.data["line"] == line_of(TEXT, "id: ttft")


def test_scalars_are_what_the_shape_says_and_not_what_yaml_guesses() -> None:
    plain = (
        TEXT.replace('"', "").replace("name: Example Customer GmbH", "name: no").replace("tier: gold", "tier: 'gold'")
    )
    found = parse_agreement(plain.encode(), "a.yaml").document
    assert found["objectives"][0]["target"] == "99.95"
    assert found["objectives"][1]["target"] == "95"
    assert found["effective"]["from"] == "2023-01-01"
    assert found["parties"]["customer"]["name"] == "no"
    assert parse_agreement(plain.encode(), "a").doc_sha256 != parse_agreement(TEXT.encode(), "a").doc_sha256
    quoted = parse_agreement(TEXT.replace('"', "").encode(), "a.yaml")
    assert quoted.doc_sha256 == parse_agreement(TEXT.encode(), "a.yaml").doc_sha256


def test_json_is_yaml() -> None:
    document, _ = parse_document(TEXT.encode(), "a.yaml", AGREEMENT)
    again = parse_agreement(json.dumps(document, indent=1).encode(), "a.json")
    assert again.document == document


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("a: [1, 2", "not YAML"),
        ("a: 1\n b: 2\n", "not YAML"),
        ("\t- x", "not YAML"),
        ("a: \x00", "not YAML"),
        ("a: 1\na: 2\n", "stands twice"),
        ("a: &x 1\nb: *x\n", "anchors"),
        ("a: *x\n", "anchors"),
        ("a: !!float 1\n", "tags"),
        ("a: !!python/object:os.system x\n", "tags"),
        ("? [1]\n: 2\n", "key must be plain text"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("just text", "must be a mapping"),
        ("- a\n- b\n", "must be a mapping"),
        ("<<: {a: 1}\n", "unknown key"),
        ("[" * 100_000, "nested deeper"),
        ("{a: " * 50_000, "nested deeper"),
        ("a:\n" + "".join(" " * n + "a:\n" for n in range(1, 60)), "nested deeper"),
    ],
)
def test_what_is_not_a_plain_document_is_refused(text: str, says: str) -> None:
    assert says in refused(text).message


def test_a_key_that_stands_twice_is_named_with_both_lines() -> None:
    error = refused(TEXT + "tier: gold\n")
    assert (error.data["field"], error.data["line"]) == ("tier", TEXT.count("\n") + 1)
    assert f"first in line {line_of(TEXT, 'tier: gold')}" in error.message


def test_an_expansion_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
    )
    assert refused(bomb).data["line"] == 1


def test_other_encodings_and_sizes_are_refused() -> None:
    assert "UTF-8" in refused(b"a: \xff\n").message
    assert refused(b"a: 1\nb: \xff\n").data["line"] == 2
    assert f"{MAX_BYTES} bytes" in refused("#" * (MAX_BYTES + 1)).message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="cannot be read"):
        load_agreement(tmp_path / "none.yaml")
    with pytest.raises(DocumentInvalid, match="cannot be read"):
        load_agreement(tmp_path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_valid_and_unsigned(path: Path) -> None:
    assert "signatures" not in load_agreement(path).document


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ('kind: Agreement\nservice: {name: "a\\ud800b"}\n', 2, "service.name"),
        ('kind: Agreement\nservice: {name: "\\udc00\\ud800"}\n', 2, "service.name"),
        ('kind: Agreement\n\n"\\udfff": 1\n', 3, ""),
    ],
)
def test_half_a_character_is_refused_where_it_stands(text: str, line: int, field: str) -> None:
    error = refused(text)
    assert "surrogate" in error.message
    assert (error.data["line"], error.data["field"]) == (line, field)


def test_escaped_pairs_as_json_writes_them_are_characters() -> None:
    document, _ = parse_document(TEXT.replace("Example Provider Ltd", "Provider \U0001f600").encode(), "a", AGREEMENT)
    escaped = json.dumps(document)
    assert "\\ud83d\\ude00" in escaped
    assert parse_agreement(escaped.encode(), "a.json").issuer.name == "Provider \U0001f600"


def test_what_another_layer_refuses_is_named_with_its_line() -> None:
    def check(agreement: Agreement) -> None:
        raise fail("collector.name", f"{agreement.service} has none")

    with pytest.raises(DocumentInvalid) as caught:
        parse_agreement(TEXT.encode(), "a.yaml", check=check)
    assert (
        caught.value.message
        == f"a.yaml:{line_of(TEXT, 'name: example-collector')}: collector.name: example-chat has none"
    )
