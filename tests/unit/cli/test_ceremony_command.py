"""``sla-ledger keys ceremony-check``, ``import`` and ``pins`` over files that were made to do harm, or by mistake."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from ledger.cli.main import main
from ledger.domain.attested import BASE_ORDER, SCALAR_ORDER
from ledger.wiring.marker import write_marker

CIRCUIT = ("--circuit", "compliance_25x4")
BLS12_381 = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
STEP = bytes(64 * 3 + 128 + 64)


def section(number: int, data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<IQ", number, len(data) if length is None else length) + data


def file_of(*sections: bytes, count: int | None = None) -> bytes:
    return b"zkey" + struct.pack("<II", 1, len(sections) if count is None else count) + b"".join(sections)


def header(*, base: int = BASE_ORDER, size: int = 32, public: int = 6) -> bytes:
    fields = struct.pack("<I", size) + base.to_bytes(48, "little")[: min(size, 48)]
    fields += struct.pack("<I", 32) + SCALAR_ORDER.to_bytes(32, "little")
    return fields + struct.pack("<III", 2**32 - 1, public, 2**31) + bytes(3 * 64 + 3 * 128)


def zkey(head: bytes, *, steps: int = 0, said: bytes = b"", ic: int = 7) -> bytes:
    history = bytes(64) + struct.pack("<I", steps) + said
    return file_of(section(1, struct.pack("<I", 1)), section(2, head), section(3, bytes(64 * ic)), section(10, history))


UNREADABLE = {
    "nothing": b"",
    "text": b"this is no key",
    "more sections than there can be": file_of(count=2**32 - 1),
    "a section longer than the file": file_of(section(1, b"", length=2**63)),
    "a section that is there twice": file_of(section(1, bytes(4)), section(1, bytes(4))),
    "another curve": zkey(header(base=BLS12_381, size=48)),
    "a field of 4 GiB": zkey(struct.pack("<I", 2**32 - 1) + bytes(100)),
    "more signals than points": zkey(header(public=64)),
    "more signals than anybody has": zkey(header(public=2**32 - 1)),
    "contributions that are not there": zkey(header(), steps=10_000),
    "more contributions than anybody makes": zkey(header(), steps=2**32 - 1),
    "a contribution with 4 GiB of words": zkey(header(), steps=1, said=STEP + struct.pack("<II", 0, 2**32 - 1)),
    "a contribution of another kind": zkey(header(), steps=1, said=STEP + struct.pack("<II", 7, 0)),
    "something after the end": zkey(header()) + b"\0",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_key_of_a_ceremony_is_refused_in_words(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crafted.zkey"
    path.write_bytes(UNREADABLE[name])
    assert main(["keys", "ceremony-check", str(path), *CIRCUIT]) == 2
    assert "name the file that the ceremony ended with" in capsys.readouterr().err


@pytest.mark.parametrize(("steps", "said"), [(0, b""), (1, STEP + struct.pack("<II", 0, 0))])
def test_a_key_of_zeros_fails_and_nothing_is_to_be_pinned(
    steps: int, said: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every point is (0, 0), which is on no curve: whoever trusted such a key would accept anything."""
    path = tmp_path / "zeros.zkey"
    path.write_bytes(zkey(header(), steps=steps, said=said))
    manifest = tmp_path / "manifest.json"
    with pytest.raises(SystemExit) as ended:
        main(["keys", "ceremony-check", str(path), *CIRCUIT, "--manifest", str(manifest), "--json"])
    assert ended.value.code == 1
    report = json.loads(capsys.readouterr().out)
    assert report["pin"] is None
    assert not manifest.exists()
    failed = {each["check"] for each in report["checks"] if each["outcome"] == "FAIL"}
    assert {"verification key", "delta"} <= failed


def test_a_folder_that_is_no_data_directory_does_not_read_as_one_that_pins_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_bytes(b"{")
    manifest = ["--manifest", str(tmp_path / "manifest.json"), "--pin", "ab" * 32]
    for command in (["pins"], ["import", "circuit.zkey", *CIRCUIT, *manifest]):
        assert main(["keys", *command, "--data", str(tmp_path)]) == 2
        assert "make one with: sla-ledger init" in capsys.readouterr().err


def test_a_manifest_that_cannot_be_read_is_named_before_a_prover_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_marker(tmp_path, 0, None)
    given = ["circuit.zkey", *CIRCUIT, "--manifest", str(tmp_path), "--pin", "ab" * 32, "--data", str(tmp_path)]
    assert main(["keys", "import", *given]) == 2
    assert f"{tmp_path} cannot be read: Is a directory" in capsys.readouterr().err
