"""Ed25519 keys: what verifies, what never does, and how key files are guarded."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from ledger.attest.crypto.signing import NoteKey, SigningKey, load_key, parse_skey, save_key, verify
from ledger.errors import KeyFileUnusable, VerifierKeyInvalid

SEED = bytes(range(32))
KEY = SigningKey(SEED)
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
seeds = st.binary(min_size=32, max_size=32)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "log.key"


# --- signatures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "public_key", "message", "signature"),
    [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            (
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
                "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
            ),
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            (
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ),
        ),
    ],
)
def test_vectors_of_rfc_8032(seed: str, public_key: str, message: str, signature: str) -> None:
    key = SigningKey(bytes.fromhex(seed))
    assert key.public_key.hex() == public_key
    assert key.sign(bytes.fromhex(message)).hex() == signature
    assert verify(key.public_key, bytes.fromhex(message), bytes.fromhex(signature))


@given(seed=seeds, message=st.binary(max_size=100), bit=st.integers(0, 511))
def test_signatures_hold_and_altered_ones_do_not(seed: bytes, message: bytes, bit: int) -> None:
    key = SigningKey(seed)
    signature = key.sign(message)
    assert verify(key.public_key, message, signature)
    altered = (int.from_bytes(signature, "big") ^ (1 << bit)).to_bytes(64, "big")
    assert not verify(key.public_key, message, altered)
    assert not verify(key.public_key, message + b"\0", signature)
    assert not verify(key.public_key, message, signature[:63])


@given(public_key=st.binary(max_size=40), message=st.binary(max_size=10), signature=st.binary(max_size=70))
def test_garbage_is_false_and_never_an_exception(public_key: bytes, message: bytes, signature: bytes) -> None:
    assert verify(public_key, message, signature) is False
    assert verify(public_key.ljust(32, b"\xee")[:32], message, signature.ljust(64, b"\xee")[:64]) is False


def test_a_signature_has_no_second_form() -> None:
    signature = KEY.sign(b"text")
    s_plus_order = int.from_bytes(signature[32:], "little") + ORDER
    assert not verify(KEY.public_key, b"text", signature[:32] + s_plus_order.to_bytes(32, "little"))


def small_order_keys() -> list[bytes]:
    """Every 32-byte spelling of a point whose order divides 8, computed from the curve equation."""
    d = -121665 * pow(121666, -1, P) % P

    def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        k = d * a[0] * b[0] * a[1] * b[1] % P
        x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + k, -1, P)
        return x % P, (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, P) % P

    def times(n: int, point: tuple[int, int]) -> tuple[int, int]:
        result = (0, 1)
        for bit in bin(n)[2:]:
            result = add(result, result)
            if bit == "1":
                result = add(result, point)
        return result

    y = 2
    while True:  # some point of the curve whose multiple by the prime order generates the group of order 8
        x2 = (y * y - 1) * pow(d * y * y + 1, -1, P) % P
        x = pow(x2, (P + 3) // 8, P)
        x = x if x * x % P == x2 else x * pow(2, (P - 1) // 4, P) % P
        torsion = times(ORDER, (x, y)) if x * x % P == x2 else (0, 1)
        if times(4, torsion) != (0, 1):
            break
        y += 1
    ys = {times(n, torsion)[1] for n in range(8)}
    spellings = ys | {value + P for value in ys if value + P < 2**255}
    return [(value | sign << 255).to_bytes(32, "little") for value in spellings for sign in (0, 1)]


def test_keys_that_would_accept_one_signature_for_everything_are_refused() -> None:
    """With the neutral point as key, (R = neutral, S = 0) satisfies the equation for any message."""
    keys = small_order_keys()
    assert len(keys) == 14
    neutral = (1).to_bytes(32, "little")
    forged = neutral + bytes(32)
    Ed25519PublicKey.from_public_bytes(neutral).verify(forged, b"anything")  # the library lets it through
    for key in keys:
        # For order 4 and 8 a share of the messages passes; 64 tries hit it.
        assert not any(verify(key, str(i).encode(), forged) for i in range(64))


def test_a_key_is_not_shown() -> None:
    assert repr(KEY) == str(KEY) == f"SigningKey(public_key={KEY.public_key.hex()})"
    note_key = NoteKey("log", KEY)
    assert repr(note_key) == f"NoteKey({note_key.key.vkey()})"


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_seed_has_32_bytes(length: int) -> None:
    with pytest.raises(KeyFileUnusable):
        SigningKey(bytes(length))


# --- note key lines ----------------------------------------------------------------------------


def test_a_note_key_line_reads_back() -> None:
    note_key = NoteKey("example.com/log", KEY)
    again = parse_skey(note_key.skey())
    assert again.key == note_key.key
    assert again.skey() == note_key.skey()
    assert again.sign(b"text") == note_key.sign(b"text")


def test_altered_note_key_lines_are_refused_and_not_repeated() -> None:
    skey = NoteKey("example.com/log", KEY).skey()
    secret = skey.rsplit("+", 1)[1]
    wrong = [
        "",
        skey.removeprefix("PRIVATE+"),
        skey.replace("example.com/log", "example.com/lag"),
        skey[:-4],
        skey + "\n",
        skey.replace("+A", "+B", 1),
        NoteKey("example.com/log", KEY).key.vkey(),
    ]
    for line in wrong:
        with pytest.raises((KeyFileUnusable, VerifierKeyInvalid)) as caught:
            parse_skey(line)
        assert secret[:20] not in str(caught.value.as_dict())


# --- key files ---------------------------------------------------------------------------------


@given(seed=seeds)
def test_a_key_file_reads_back(tmp_path_factory: pytest.TempPathFactory, seed: bytes) -> None:
    path = tmp_path_factory.mktemp("keys") / "log.key"
    save_key(path, SigningKey(seed))
    assert load_key(path).seed() == seed


def test_a_key_file_is_private_and_alone(key_file: Path) -> None:
    before = os.umask(0)
    try:
        save_key(key_file, KEY)
    finally:
        os.umask(before)
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert list(key_file.parent.iterdir()) == [key_file]
    assert key_file.read_text().startswith("-----BEGIN PRIVATE KEY-----")


def test_a_key_is_never_overwritten(key_file: Path) -> None:
    save_key(key_file, KEY)
    with pytest.raises(KeyFileUnusable, match="not overwritten"):
        save_key(key_file, SigningKey(b"\x07" * 32))
    assert load_key(key_file).seed() == SEED
    assert list(key_file.parent.iterdir()) == [key_file]


def test_saving_where_nothing_can_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(KeyFileUnusable, match="No such file"):
        save_key(tmp_path / "missing" / "log.key", KEY)


@pytest.mark.parametrize("content", [SEED.hex(), SEED.hex().upper() + "\n"])
def test_hex_key_files_are_read(key_file: Path, content: str) -> None:
    key_file.touch(0o600)
    key_file.write_text(content)
    assert load_key(key_file).public_key == KEY.public_key


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o620, 0o602, 0o610])
def test_a_key_others_can_reach_is_refused(key_file: Path, mode: int) -> None:
    save_key(key_file, KEY)
    key_file.chmod(mode)
    with pytest.raises(KeyFileUnusable, match="chmod 600"):
        load_key(key_file)
    key_file.chmod(0o400)
    assert load_key(key_file).seed() == SEED


def pem_of(key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey, password: bytes | None) -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        SEED,
        SEED.hex()[:-1].encode(),
        SEED.hex().encode() + b"0",
        b"zz" * 32,
        "٠".encode() * 32,
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        pem_of(Ed25519PrivateKey.from_private_bytes(SEED), b"password"),
        pem_of(ec.generate_private_key(ec.SECP256R1()), None),
        b"0" * 100_000,
    ],
)
def test_other_contents_are_refused_and_not_repeated(key_file: Path, content: bytes) -> None:
    key_file.touch(0o600)
    key_file.write_bytes(content)
    with pytest.raises(KeyFileUnusable, match="no Ed25519 private key") as caught:
        load_key(key_file)
    assert SEED.hex()[:20] not in str(caught.value.as_dict())


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileUnusable):
        load_key(tmp_path)
    with pytest.raises(KeyFileUnusable, match="No such file"):
        load_key(tmp_path / "missing")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    with pytest.raises(KeyFileUnusable, match="regular file"):
        load_key(fifo)
