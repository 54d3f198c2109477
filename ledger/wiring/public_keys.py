"""What others must know of a directory's keys, for processes that are not given them: ``public-keys.json``.

``sla-ledger init`` writes it. Nothing in it is secret, but whoever may write it says which chain proofs are for and
whose seals are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.domain.record.canonical import canonical_bytes, parse_json
from ledger.domain.schema import MapOf, Object, OneOf, Text
from ledger.domain.terms.agreement_schema import EVM_ADDRESS, FIELD_ELEMENT
from ledger.errors import DataDirectoryInvalid, SlaLedgerError
from ledger.merkle.note import VerifierKey, parse_vkey
from ledger.wiring.files import replace_file

PUBLIC_KEYS_FILE: Final = "public-keys.json"
PUBLIC_KEYS_FORMAT: Final = "sla-ledger/public-keys/v1"
_MAX_FILE_BYTES: Final = 1024 * 1024

_SHAPE: Final = Object(
    {
        "format": OneOf((PUBLIC_KEYS_FORMAT,)),
        "log_vkey": Text(max_length=1000),
        # One whose key is nowhere here is missing, as where it is another process's alone.
        "accounts": Object({}, {"deployer": EVM_ADDRESS, "issuer": EVM_ADDRESS}),
        "collectors": MapOf("collector(-.{1,100})?", Object({"x": FIELD_ELEMENT, "y": FIELD_ELEMENT}), 10_000),
    },
    title="sla-ledger public keys v1",
)


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """The log's first key, the addresses of ``deployer`` and ``issuer``, and the collectors' keys by their names."""

    log: VerifierKey
    accounts: Mapping[str, str]
    collectors: Mapping[str, tuple[int, int]]


def read_public_keys(folder: Path) -> PublicKeys:
    """Raises ``DataDirectoryInvalid`` where the file is missing or says something else."""
    path = folder / PUBLIC_KEYS_FILE
    try:
        document = parse_json(path.read_bytes(), max_bytes=_MAX_FILE_BYTES)
        _SHAPE.check(document, "")
        collectors = {name: (int(key["x"]), int(key["y"])) for name, key in document["collectors"].items()}
        return PublicKeys(parse_vkey(document["log_vkey"]), dict(document["accounts"]), collectors)
    except (OSError, ValueError, SlaLedgerError) as error:
        raise DataDirectoryInvalid(
            f"{path} does not tell this process of the keys that it is not given ({error}); have it written by: "
            "sla-ledger init --data DIR",
            path=str(path),
        ) from error


def write_public_keys(folder: Path, keys: PublicKeys) -> None:
    """Write the file, unless it says that already. Raises ``DataDirectoryInvalid``."""
    content = canonical_bytes(
        {
            "format": PUBLIC_KEYS_FORMAT,
            "log_vkey": keys.log.vkey(),
            "accounts": dict(keys.accounts),
            "collectors": {name: {"x": str(x), "y": str(y)} for name, (x, y) in keys.collectors.items()},
        }
    )
    path = folder / PUBLIC_KEYS_FILE
    try:
        if not path.exists() or path.read_bytes() != content:
            replace_file(path, content)
    except OSError as error:
        raise DataDirectoryInvalid(f"{path} cannot be written ({error.strerror})", path=str(path)) from error
