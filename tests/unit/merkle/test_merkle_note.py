"""Signed notes and checkpoints with real Ed25519 keys."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.attest.crypto.signing import NoteKey, SigningKey, verify
from ledger.errors import NoteInvalid, NoteUnverified, VerifierKeyInvalid
from ledger.merkle.checkpoint import Checkpoint, open_checkpoint, parse_checkpoint, sign_checkpoint
from ledger.merkle.hasher import EMPTY_ROOT, leaf_hash
from ledger.merkle.note import (
    MAX_NOTE_BYTES,
    MAX_SIGNATURES,
    NoteSignature,
    SignedNote,
    VerifierKey,
    open_note,
    parse_note,
    parse_vkey,
    sign_note,
)

LOG = NoteKey("example.com/log", SigningKey(b"\x01" * 32))
NEW_LOG = NoteKey("example.com/log", SigningKey(b"\x02" * 32))
WITNESS = NoteKey("witness.example/w1", SigningKey(b"\x03" * 32))
ROOT = leaf_hash(b"an entry")
CHECKPOINT = Checkpoint("example.com/log", 7, ROOT)

lines = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
texts = st.lists(st.one_of(lines, st.just("")), min_size=1, max_size=5).map(lambda parts: "\n".join(parts) + "\n")


def line(name: str, blob: bytes) -> str:
    return f"\N{EM DASH} {name} {b64encode(blob).decode()}\n"


# --- notes -------------------------------------------------------------------------------------


@given(text=texts, signers=st.permutations([LOG, NEW_LOG, WITNESS]), count=st.integers(1, 3))
def test_a_signed_note_opens_with_its_keys(text: str, signers: list[NoteKey], count: int) -> None:
    raw = sign_note(text, signers[:count])
    opened = open_note(raw, [signer.key for signer in signers], verify)
    assert opened.text == text
    assert opened.verified == tuple(signer.key for signer in signers[:count])
    assert opened.unverified == ()
    assert parse_note(raw).to_bytes() == raw


@given(data=st.data())
def test_no_altered_byte_of_a_note_goes_unseen(data: st.DataObject) -> None:
    raw = sign_note("two lines\nof text\n", [LOG])
    at = data.draw(st.integers(0, len(raw) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != raw[at]))
    with pytest.raises(NoteInvalid):
        open_note(raw[:at] + bytes([byte]) + raw[at + 1 :], [LOG.key], verify)


@given(st.binary(max_size=200))
def test_garbage_is_refused_as_a_note(raw: bytes) -> None:
    with pytest.raises(NoteInvalid):
        open_note(raw, [LOG.key], verify)


def test_signatures_of_unknown_keys_are_left_aside() -> None:
    raw = sign_note("text\n", [WITNESS, LOG])
    opened = open_note(raw, [LOG.key], verify)
    assert opened.verified == (LOG.key,)
    assert [signature.name for signature in opened.unverified] == ["witness.example/w1"]


def test_a_key_that_shares_only_the_name_or_only_the_id_is_unknown() -> None:
    same_name = sign_note("text\n", [NEW_LOG])
    same_id = ("text\n\n" + line("other.example", LOG.key.key_id + LOG.sign(b"text\n"))).encode()
    for raw in (same_name, same_id):
        with pytest.raises(NoteUnverified, match="No trusted key"):
            open_note(raw, [LOG.key], verify)


def test_a_false_signature_of_a_trusted_key_condemns_the_note() -> None:
    good = line(LOG.key.name, LOG.key.key_id + LOG.sign(b"text\n"))
    false = line(LOG.key.name, LOG.key.key_id + LOG.sign(b"other\n"))
    short = line(LOG.key.name, LOG.key.key_id + b"\0")
    for block in (false, good + false, false + good, good + short):
        with pytest.raises(NoteUnverified, match="false"):
            open_note(("text\n\n" + block).encode(), [LOG.key, WITNESS.key], verify)


def test_repeated_signatures_count_once() -> None:
    good = line(LOG.key.name, LOG.key.key_id + LOG.sign(b"text\n"))
    opened = open_note(("text\n\n" + good * 16).encode(), [LOG.key], verify)
    assert opened.verified == (LOG.key,)


def test_the_text_ends_at_the_last_blank_line() -> None:
    signature = line(LOG.key.name, LOG.key.key_id + LOG.sign(b"inner\n"))
    raw = sign_note(f"inner\n\n{signature}", [WITNESS])
    assert parse_note(raw).text == f"inner\n\n{signature}"
    with pytest.raises(NoteUnverified):
        open_note(raw, [LOG.key], verify)


def test_sixteen_large_signatures_are_read() -> None:
    signatures = tuple(NoteSignature(f"pq{i}.example", b"\0\0\0\1", b"\7" * 5000) for i in range(16))
    assert parse_note(SignedNote("text\n", signatures).to_bytes()).signatures == signatures


def test_limits_hold() -> None:
    signature = line("a", b"\0\0\0\0\0")
    assert len(parse_note(("text\n\n" + signature * MAX_SIGNATURES).encode()).signatures) == MAX_SIGNATURES
    with pytest.raises(NoteInvalid, match="101 signatures"):
        parse_note(("text\n\n" + signature * (MAX_SIGNATURES + 1)).encode())
    with pytest.raises(NoteInvalid, match="at most"):
        parse_note(b"\xff" * (MAX_NOTE_BYTES + 1))
    with pytest.raises(NoteInvalid):
        sign_note("x" * MAX_NOTE_BYTES + "\n", [LOG])
    for signers in ([], [LOG] * (MAX_SIGNATURES + 1)):
        with pytest.raises(NoteInvalid, match="signers"):
            sign_note("text\n", signers)


@pytest.mark.parametrize("text", ["", "no newline", "tab\tinside\n", "cr\r\n", "nul\0\n", "lone \ud800 surrogate\n"])
def test_texts_no_note_has_are_not_signed(text: str) -> None:
    with pytest.raises(NoteInvalid):
        sign_note(text, [LOG])


@pytest.mark.parametrize(
    "block",
    [
        "",
        "- a AAAAAAA=\n",
        "\N{EM DASH} a AAAAAAA=",
        "\N{EM DASH} a  AAAAAAA=\n",
        "\N{EM DASH}  a AAAAAAA=\n",
        "\N{EM DASH}a AAAAAAA=\n",
        "\N{EM DASH} a AAAAAAA= \n",
        "\N{EM DASH} a AAAAAAA\n",
        "\N{EM DASH} a AAAAAAB=\n",
        "\N{EM DASH} a AAAA_AA=\n",
        "\N{EM DASH} a AAAAAA==\n",
        "\N{EM DASH} a \n",
        "\N{EM DASH} a\n",
        "\N{EM DASH} a+b AAAAAAA=\n",
        "\N{EM DASH} a\N{NO-BREAK SPACE}b AAAAAAA=\n",
        "\N{EM DASH} a\N{IDEOGRAPHIC SPACE}b AAAAAAA=\n",
        "\N{EM DASH} a AAAAAAA=\nmore text\n",
        "\N{EM DASH} a AAAAAAA=\r\n",
    ],
)
def test_malformed_signature_blocks_are_refused(block: str) -> None:
    assert parse_note("text\n\n\N{EM DASH} a AAAAAAA=\n".encode()).text == "text\n"
    with pytest.raises(NoteInvalid):
        parse_note(f"text\n\n{block}".encode())


# --- keys --------------------------------------------------------------------------------------


@given(seed=st.binary(min_size=32, max_size=32))
def test_a_verifier_key_reads_back(seed: bytes) -> None:
    key = NoteKey("example.com/log", SigningKey(seed)).key
    assert parse_vkey(key.vkey()) == key


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\N{NO-BREAK SPACE}b", "a\x01", "a\ud800"])
def test_names_no_key_has(name: str) -> None:
    with pytest.raises(VerifierKeyInvalid):
        VerifierKey(name, LOG.key.public_key)


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_public_key_has_32_bytes(length: int) -> None:
    with pytest.raises(VerifierKeyInvalid):
        VerifierKey("a", bytes(length))


def test_a_vkey_in_other_spellings_is_refused() -> None:
    name, id_hex, encoded = LOG.key.vkey().split("+", 2)
    wrong = [
        f"{name}+{id_hex.upper()}+{encoded}",
        f"{name}+{id_hex}+{encoded}\n",
        f" {name}+{id_hex}+{encoded}",
        f"{name}+00000000+{encoded}",
        f"{name}+{id_hex}+{b64encode(LOG.key.public_key).decode()}",
        f"{name}+{id_hex}+",
        f"{'n' * 2000}+{id_hex}+{encoded}",
    ]
    for vkey in wrong:
        with pytest.raises(VerifierKeyInvalid):
            parse_vkey(vkey)


def test_two_trusted_keys_may_not_be_confused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A colliding key id takes 2**32 tries to find; here the id is cut to nothing instead."""
    monkeypatch.setattr("ledger.merkle.note.key_id", lambda *_: b"\0\0\0\0")
    with pytest.raises(VerifierKeyInvalid, match="Two different"):
        open_note(sign_note("text\n", [LOG]), [LOG.key, NEW_LOG.key], verify)
    open_note(sign_note("text\n", [LOG]), [LOG.key, LOG.key], verify)


# --- checkpoints -------------------------------------------------------------------------------


@given(
    origin=lines,
    size=st.integers(1, 2**63 - 1),
    root=st.binary(min_size=32, max_size=32),
    extensions=st.lists(lines, max_size=3),
)
def test_a_checkpoint_reads_back(origin: str, size: int, root: bytes, extensions: list[str]) -> None:
    checkpoint = Checkpoint(origin, size, root, tuple(extensions))
    assert parse_checkpoint(checkpoint.text()) == checkpoint
    opened = open_checkpoint(sign_checkpoint(checkpoint, [LOG]), origin, [LOG.key], verify)
    assert opened.checkpoint == checkpoint


def test_while_keys_rotate_either_opens_the_checkpoint() -> None:
    raw = sign_checkpoint(CHECKPOINT, [LOG, NEW_LOG])
    for keys in ([LOG.key], [NEW_LOG.key]):
        assert open_checkpoint(raw, "example.com/log", keys, verify).checkpoint == CHECKPOINT


def test_a_checkpoint_of_another_log_under_the_same_key_is_refused() -> None:
    raw = sign_checkpoint(Checkpoint("example.com/other", 7, ROOT), [LOG])
    with pytest.raises(NoteUnverified, match=r"not of 'example\.com/log'"):
        open_checkpoint(raw, "example.com/log", [LOG.key], verify)


def test_a_checkpoint_only_a_witness_signed_is_not_the_logs() -> None:
    with pytest.raises(NoteUnverified):
        open_checkpoint(sign_checkpoint(CHECKPOINT, [WITNESS]), "example.com/log", [LOG.key], verify)


def test_a_signed_text_that_is_no_checkpoint_is_refused() -> None:
    with pytest.raises(NoteInvalid, match="three lines"):
        open_checkpoint(sign_note("example.com/log\n7\n", [LOG]), "example.com/log", [LOG.key], verify)


ROOT_BASE64 = b64encode(ROOT).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        f"log\n7\n{ROOT_BASE64}",
        f"log\n07\n{ROOT_BASE64}\n",
        f"log\n+7\n{ROOT_BASE64}\n",
        f"log\n-7\n{ROOT_BASE64}\n",
        f"log\n7 \n{ROOT_BASE64}\n",
        f"log\n7_0\n{ROOT_BASE64}\n",
        f"log\n٧\n{ROOT_BASE64}\n",
        f"log\n7.0\n{ROOT_BASE64}\n",
        f"log\n{2**63}\n{ROOT_BASE64}\n",
        f"log\n\n{ROOT_BASE64}\n",
        f"\n7\n{ROOT_BASE64}\n",
        f"log\n7\n{ROOT.hex()}\n",
        f"log\n7\n{ROOT_BASE64[:-1]}\n",
        f"log\n7\n{ROOT_BASE64} \n",
        f"log\n7\n{b64encode(ROOT[:31]).decode()}\n",
        f"log\n7\n{b64encode(ROOT + b'x').decode()}\n",
        f"log\n7\n{ROOT_BASE64}\n\n",
        f"log\n7\n{ROOT_BASE64}\n\nextension\n",
        f"log\n7\r\n{ROOT_BASE64}\n",
        f"log\n0\n{ROOT_BASE64}\n",
        "x" * (MAX_NOTE_BYTES + 1),
    ],
)
def test_texts_that_are_no_checkpoint(text: str) -> None:
    assert parse_checkpoint(f"log\n7\n{ROOT_BASE64}\nextension\n").extensions == ("extension",)
    with pytest.raises(NoteInvalid):
        parse_checkpoint(text)


def test_a_root_in_noncanonical_base64_is_refused() -> None:
    """The last character of a 32-byte value carries two unused bits; only zeros are the canonical spelling."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    twin = alphabet[alphabet.index(ROOT_BASE64[-2]) + 1]
    with pytest.raises(NoteInvalid, match="canonical"):
        parse_checkpoint(f"log\n7\n{ROOT_BASE64[:-2]}{twin}=\n")


@pytest.mark.parametrize("line_", ["", "two\nlines", "tab\t"])
def test_lines_a_checkpoint_cannot_have(line_: str) -> None:
    with pytest.raises(NoteInvalid):
        Checkpoint(line_, 7, ROOT)
    with pytest.raises(NoteInvalid):
        Checkpoint("log", 7, ROOT, (line_,))


def test_the_empty_log_has_the_empty_root() -> None:
    assert parse_checkpoint(Checkpoint("log", 0, EMPTY_ROOT).text()).size == 0
    for size in (-1, 2**63):
        with pytest.raises(NoteInvalid):
            Checkpoint("log", size, EMPTY_ROOT)
