"""Ed25519 (RFC 8032) over the ``cryptography`` package: signing, checking, and private key files.

``verify`` fits ``ledger.merkle.note.Verify`` and ``NoteKey`` fits its ``NoteSigner``. Private key bytes never
enter an error, a log line or a ``repr``.
"""

from __future__ import annotations

import os
import stat
import tempfile
from base64 import b64encode
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledger.errors import KeyFileUnusable
from ledger.merkle.note import ED25519, VerifierKey, decode_base64, key_id

SEED_BYTES = 32
PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64

_MAX_KEY_FILE_BYTES = 4096
_SKEY_PREFIX = "PRIVATE+KEY+"
_SKEY_PARTS = 3
_FIELD_PRIME = 2**255 - 19
_SIGN_BIT = 1 << 255
_SMALL_ORDER_Y = frozenset(
    {
        0,
        1,
        _FIELD_PRIME - 1,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
    }
)
"""The y coordinates of the eight points of edwards25519 whose order divides 8."""


class SigningKey:
    """A private key. Its ``repr`` shows the public half only."""

    __slots__ = ("_private", "public_key")

    def __init__(self, seed: bytes) -> None:
        """The key of a 32-byte seed (RFC 8032's private key). Raises KeyFileUnusable for another length."""
        if len(seed) != SEED_BYTES:
            raise KeyFileUnusable(f"An Ed25519 seed has {SEED_BYTES} bytes, this one has {len(seed)}.")
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key: bytes = self._private.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return f"SigningKey(public_key={self.public_key.hex()})"

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature, the same every time for the same key and message."""
        return self._private.sign(message)

    def seed(self) -> bytes:
        """The secret itself, for storing it. Keep it out of messages."""
        return self._private.private_bytes_raw()


class NoteKey:
    """A signing key under the name it signs notes with."""

    __slots__ = ("_signing_key", "key")

    def __init__(self, name: str, signing_key: SigningKey) -> None:
        """Raises VerifierKeyInvalid for a name no note key has."""
        self.key = VerifierKey(name, signing_key.public_key)
        self._signing_key = signing_key

    def __repr__(self) -> str:
        return f"NoteKey({self.key.vkey()})"

    def sign(self, message: bytes) -> bytes:
        return self._signing_key.sign(message)

    def skey(self) -> str:
        """The secret as one line, ``PRIVATE+KEY+name+hash+base64(0x01 || seed)``, as other note tools read it."""
        encoded = b64encode(bytes([ED25519]) + self._signing_key.seed()).decode()
        return f"{_SKEY_PREFIX}{self.key.name}+{self.key.key_id.hex()}+{encoded}"


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature holds. False, never an exception, for bytes that are no key or no signature.

    Keys of small order and keys in a second spelling (y >= p) are refused: a key of small order accepts one
    signature for every message, so its holder could deny having signed anything.
    """
    if len(public_key) != PUBLIC_KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    y = int.from_bytes(public_key, "little") & ~_SIGN_BIT
    if y >= _FIELD_PRIME or y in _SMALL_ORDER_Y:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def parse_skey(line: str) -> NoteKey:
    """The note key of a ``PRIVATE+KEY+...`` line. Raises KeyFileUnusable without repeating the line."""
    parts = line.removeprefix(_SKEY_PREFIX).split("+", 2) if line.startswith(_SKEY_PREFIX) else []
    typed_seed = decode_base64(parts[2]) if len(parts) == _SKEY_PARTS else None
    if not typed_seed or typed_seed[0] != ED25519:
        raise KeyFileUnusable("Not an Ed25519 note key. Expected PRIVATE+KEY+name+hash+base64 on one line.")
    name, id_hex, _ = parts
    note_key = NoteKey(name, SigningKey(typed_seed[1:]))
    if key_id(name, ED25519, note_key.key.public_key).hex() != id_hex:
        raise KeyFileUnusable("The note key's hash does not fit its name and key; it was mistyped or altered.")
    return note_key


def save_key(path: Path, key: SigningKey) -> None:
    """Write the private key to a new file: PEM (PKCS #8), mode 0600, complete or not there at all.

    An existing file is never replaced. Raises KeyFileUnusable.
    """
    pem = key._private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(path, pem)


def save_secret(path: Path, secret: bytes) -> None:
    """Write a 32-byte secret of any kind of key as 64 hex digits, with the guarantees of ``save_key``."""
    if len(secret) != SEED_BYTES:
        raise KeyFileUnusable(f"A secret has {SEED_BYTES} bytes, this one has {len(secret)}.")
    _write_new(path, secret.hex().encode() + b"\n")


def load_key(path: Path) -> SigningKey:
    """The private key of a file: PEM (PKCS #8, unencrypted) or the seed as 64 hex digits.

    Raises KeyFileUnusable, also when anyone but the file's owner may read or write it.
    """
    return _signing_key(path, _read_private(path))


def save_note_key(path: Path, key: NoteKey) -> None:
    """Write a note key's line to a new file, with the guarantees of ``save_key``."""
    _write_new(path, key.skey().encode() + b"\n")


def load_note_key(path: Path, name: str) -> NoteKey:
    """The note key of a file: its ``PRIVATE+KEY+...`` line, or any file of ``load_key``, then under ``name``.

    Raises KeyFileUnusable, also when anyone but the file's owner may read or write it.
    """
    content = _read_private(path)
    if content.startswith(_SKEY_PREFIX.encode()):
        try:
            return parse_skey(content.decode().strip())
        except (UnicodeDecodeError, KeyFileUnusable) as error:
            raise KeyFileUnusable(f"{path} holds no usable note key.", path=str(path)) from error
    return NoteKey(name, _signing_key(path, content))


def _write_new(path: Path, content: bytes) -> None:
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # A hard link appears whole under its name and, unlike a rename, never replaces what is there.
        os.link(temporary, path)
    except FileExistsError:
        raise KeyFileUnusable(
            f"{path} exists and is not overwritten: losing a key cannot be undone. Choose another file.",
            path=str(path),
        ) from None
    except OSError as error:
        raise KeyFileUnusable(f"The key cannot be written to {path}: {error.strerror}.", path=str(path)) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink()
    _sync_directory(path.parent)


def _read_private(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            _require_private(path, os.fstat(file.fileno()))
            return file.read(_MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise KeyFileUnusable(f"The key file {path} cannot be read: {error.strerror}.", path=str(path)) from error


def _signing_key(path: Path, content: bytes) -> SigningKey:
    seed = _seed_of(content) if len(content) <= _MAX_KEY_FILE_BYTES else None
    if seed is None:
        raise KeyFileUnusable(
            f"{path} holds no Ed25519 private key: expected unencrypted PEM or 64 hex digits.", path=str(path)
        )
    return SigningKey(seed)


def _require_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise KeyFileUnusable(f"{path} is not a regular file.", path=str(path))
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyFileUnusable(
            f"{path} is open to others than its owner (mode {mode:04o}). Run: chmod 600 {path}",
            path=str(path),
            mode=f"{mode:04o}",
        )


def _seed_of(content: bytes) -> bytes | None:
    if content.lstrip().startswith(b"-----BEGIN"):
        try:
            private = serialization.load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return None
        return private.private_bytes_raw() if isinstance(private, Ed25519PrivateKey) else None
    digits = content.strip()
    try:
        return bytes.fromhex(digits.decode("ascii")) if len(digits) == 2 * SEED_BYTES else None
    except ValueError:
        return None


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
