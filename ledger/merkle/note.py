"""Signed notes (C2SP signed-note): a text and the signatures of named keys under it.

Signing and checking a signature come in as callables, since this package knows no cryptography beyond
hashing. Only Ed25519 keys of type 0x01 are known here; signatures of anyone else are carried, not judged.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, Protocol

from ledger.errors import NoteInvalid, NoteUnverified, VerifierKeyInvalid

MAX_NOTE_BYTES = 256 * 1024
"""Room for 16 post-quantum signatures of 5 kB, which the specification asks for, and the text above them."""
MAX_SIGNATURES = 100
MAX_KEY_CHARS = 1024
ED25519 = 0x01
PUBLIC_KEY_BYTES = 32
KEY_ID_BYTES = 4

Verify = Callable[[bytes, bytes, bytes], bool]
"""``verify(public_key, message, signature)``: whether the Ed25519 signature holds. Never raises."""

_DASH = "\N{EM DASH}"
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_KEY_ID_HEX = re.compile(r"[0-9a-f]{8}")


class NoteSigner(Protocol):
    """Whoever holds a private key: the key it answers for, and its signature over the text's UTF-8 bytes."""

    @property
    def key(self) -> VerifierKey: ...

    def sign(self, message: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class NamedKey:
    """An Ed25519 public key (32 bytes) under the name of its holder, of a type. Raises VerifierKeyInvalid.

    Keys of two types differ in their key ids even where name and bytes are the same, and are never equal.
    """

    KEY_TYPE: ClassVar[int]

    name: str
    public_key: bytes

    def __post_init__(self) -> None:
        require_key(self.name, self.public_key)

    @property
    def key_id(self) -> bytes:
        """The four bytes that, with the name, mark this key's signatures in a note."""
        return key_id(self.name, self.KEY_TYPE, self.public_key)

    def vkey(self) -> str:
        """The key as one line: ``name+hash+base64(type || public key)``."""
        return typed_vkey(self.name, self.KEY_TYPE, self.public_key)


@dataclass(frozen=True, slots=True)
class VerifierKey(NamedKey):
    """The key that a log signs its notes with."""

    KEY_TYPE = ED25519


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: who signed (name and key id), and the raw signature."""

    name: str
    key_id: bytes
    signature: bytes

    def line(self) -> str:
        return f"{_DASH} {self.name} {b64encode(self.key_id + self.signature).decode()}\n"


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A note as parsed: well formed, its signatures not yet judged. ``text`` ends in a newline."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def to_bytes(self) -> bytes:
        return (self.text + "\n" + "".join(signature.line() for signature in self.signatures)).encode()


@dataclass(frozen=True, slots=True)
class OpenedNote:
    """A note at least one trusted key signed: ``verified`` names those keys, each once and in the note's order.

    ``unverified`` are the signatures of other keys, without exact repetitions.
    """

    text: str
    verified: tuple[VerifierKey, ...]
    unverified: tuple[NoteSignature, ...]


def key_id(name: str, signature_type: int, encoded_key: bytes) -> bytes:
    """SHA-256(name || newline || type || key)[:4], as the specification recommends for every type."""
    return sha256(name.encode() + b"\n" + bytes([signature_type]) + encoded_key).digest()[:KEY_ID_BYTES]


def is_key_name(name: str) -> bool:
    """Whether a key may be called this: not empty, no Unicode space, no plus, no control character, UTF-8."""
    if not name or "+" in name or _CONTROL.search(name) or any(char.isspace() for char in name):
        return False
    return not any("\ud800" <= char <= "\udfff" for char in name)


def require_key(name: str, public_key: bytes) -> None:
    """Raise VerifierKeyInvalid unless this is a key name and 32 bytes."""
    if not is_key_name(name):
        raise VerifierKeyInvalid(
            "A key name is not empty and has no space, plus or control character; "
            "use a URL without scheme, such as example.com/log.",
            name=name,
        )
    if len(public_key) != PUBLIC_KEY_BYTES:
        raise VerifierKeyInvalid(
            f"An Ed25519 public key has {PUBLIC_KEY_BYTES} bytes.", name=name, found=len(public_key)
        )


def typed_vkey(name: str, signature_type: int, public_key: bytes) -> str:
    """The one-line form of a key: ``name+hash+base64(type || public key)``."""
    encoded = b64encode(bytes([signature_type]) + public_key).decode()
    return f"{name}+{key_id(name, signature_type, public_key).hex()}+{encoded}"


def parse_vkey(vkey: str) -> VerifierKey:
    """The key of a ``name+hash+base64`` line. Raises VerifierKeyInvalid, also when the hash is not the key's."""
    return VerifierKey(*parse_typed_vkey(vkey, ED25519))


def parse_typed_vkey(vkey: str, signature_type: int) -> tuple[str, bytes]:
    """Name and Ed25519 public key of a line of exactly this type. Raises VerifierKeyInvalid."""
    parts = vkey.split("+", 2) if len(vkey) <= MAX_KEY_CHARS else []
    if len(parts) != 3 or not _KEY_ID_HEX.fullmatch(parts[1]):
        raise VerifierKeyInvalid(
            "Not a verifier key. Expected one line: name+8 hex digits+base64.", vkey=vkey[:MAX_KEY_CHARS]
        )
    name, id_hex, encoded = parts
    typed_key = decode_base64(encoded)
    if not typed_key or typed_key[0] != signature_type:
        raise VerifierKeyInvalid(
            f"The verifier key is not an Ed25519 key of type 0x{signature_type:02x} in canonical base64; "
            "a log's key has type 0x01, a witness's 0x04, and no other is known here.",
            vkey=vkey,
        )
    require_key(name, typed_key[1:])
    expected = key_id(name, signature_type, typed_key[1:]).hex()
    if expected != id_hex:
        raise VerifierKeyInvalid(
            f"The verifier key's hash should be {expected}; it was mistyped or altered.", vkey=vkey
        )
    return name, typed_key[1:]


def require_text(text: str) -> None:
    """Raise NoteInvalid unless ``text`` may be signed: UTF-8, newline at the end, no other control character."""
    if not text.endswith("\n"):
        raise NoteInvalid("The text of a note must end in a newline.")
    if _CONTROL.search(text):
        raise NoteInvalid("The text of a note has a control character other than newline.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NoteInvalid("The text of a note has no UTF-8 form.") from error


def parse_note(raw: bytes) -> SignedNote:
    """Take a note apart without judging signatures. Size limits hold before anything is parsed.

    Raises NoteInvalid.
    """
    if len(raw) > MAX_NOTE_BYTES:
        raise NoteInvalid(f"The note has {len(raw)} bytes; at most {MAX_NOTE_BYTES} are read.")
    try:
        note = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoteInvalid("The note is not UTF-8.", offset=error.start) from error
    before, blank_line, block = note.rpartition("\n\n")
    if not blank_line or not block.endswith("\n"):
        raise NoteInvalid("A note needs a blank line and, below it, signature lines that end in a newline.")
    signature_count = block.count("\n")
    if signature_count > MAX_SIGNATURES:
        raise NoteInvalid(f"The note has {signature_count} signatures; at most {MAX_SIGNATURES} are read.")
    text = before + "\n"
    require_text(text)
    lines = block[:-1].split("\n")
    return SignedNote(text, tuple(parse_signature(line) for line in lines))


def parse_signature(line: str) -> NoteSignature:
    """One signature line, without its line end. Raises NoteInvalid."""
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    if dash != _DASH or not is_key_name(name):
        raise NoteInvalid(
            "Below the blank line a note has only signature lines: em dash, space, key name, space, base64."
        )
    blob = decode_base64(encoded)
    if blob is None or len(blob) <= KEY_ID_BYTES:
        raise NoteInvalid(f"The signature of {name} is not canonical base64 of a key id and a signature.", name=name)
    return NoteSignature(name, blob[:KEY_ID_BYTES], blob[KEY_ID_BYTES:])


def open_note(raw: bytes, keys: Iterable[VerifierKey], verify: Verify) -> OpenedNote:
    """The text of a note that at least one of ``keys`` signed.

    Signatures of unknown keys are left aside. Every distinct signature under a known name and key id is
    checked, and one false signature condemns the note. Raises NoteInvalid, NoteUnverified, or
    VerifierKeyInvalid where two different keys share name and id.
    """
    trusted = _by_name_and_id(keys)
    note = parse_note(raw)
    message = note.text.encode()
    verified: dict[VerifierKey, None] = {}
    unverified: list[NoteSignature] = []
    for signature in dict.fromkeys(note.signatures):
        key = trusted.get((signature.name, signature.key_id))
        if key is None:
            unverified.append(signature)
        elif verify(key.public_key, message, signature.signature):
            verified[key] = None
        else:
            raise NoteUnverified(
                f"The signature of {key.name} is false: the note was altered after signing.", key=key.vkey()
            )
    if not verified:
        raise NoteUnverified("No trusted key signed this note.", signed_by=[signature.name for signature in unverified])
    return OpenedNote(note.text, tuple(verified), tuple(unverified))


def sign_note(text: str, signers: Sequence[NoteSigner]) -> bytes:
    """The note over ``text`` with one signature line per signer. Raises NoteInvalid for a text no note has."""
    require_text(text)
    if not 1 <= len(signers) <= MAX_SIGNATURES:
        raise NoteInvalid(f"A note needs between 1 and {MAX_SIGNATURES} signers.")
    message = text.encode()
    signatures = tuple(NoteSignature(signer.key.name, signer.key.key_id, signer.sign(message)) for signer in signers)
    raw = SignedNote(text, signatures).to_bytes()
    if len(raw) > MAX_NOTE_BYTES:
        raise NoteInvalid(f"The signed note would have {len(raw)} bytes; nobody reads over {MAX_NOTE_BYTES}.")
    return raw


def decode_base64(encoded: str) -> bytes | None:
    """Bytes of standard base64 (RFC 4648 section 4) in its one canonical spelling; None for any other."""
    try:
        decoded = binascii.a2b_base64(encoded, strict_mode=True)
    except ValueError:
        return None
    return decoded if b64encode(decoded).decode() == encoded else None


def _by_name_and_id(keys: Iterable[VerifierKey]) -> dict[tuple[str, bytes], VerifierKey]:
    trusted: dict[tuple[str, bytes], VerifierKey] = {}
    for key in keys:
        if trusted.setdefault((key.name, key.key_id), key) != key:
            raise VerifierKeyInvalid(
                f"Two different trusted keys are called {key.name}+{key.key_id.hex()}; rename one.", name=key.name
            )
    return trusted
