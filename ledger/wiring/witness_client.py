"""Witnesses over HTTP: the file that names them, and the requests to them."""

from __future__ import annotations

import http.client
import os
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from ledger.app.log.cosigning import MAX_ANSWER_BYTES, WitnessAnswer
from ledger.domain.record.canonical import parse_json
from ledger.domain.schema import Integer, ListOf, Object, OneOf, Text
from ledger.errors import SettingInvalid, SlaLedgerError, WitnessesUnavailable
from ledger.merkle.cosignature import WitnessKey, WitnessPolicy, parse_witness_vkey

WITNESSES_FORMAT = "sla-ledger/witnesses/v1"
WITNESSES_FILE = "witnesses.json"
WITNESSES_VARIABLE = "SLA_LEDGER_WITNESSES"
TIMEOUT_S = 5
_MAX_FILE_BYTES = 64 * 1024

WITNESSES = Object(
    {
        "format": OneOf((WITNESSES_FORMAT,)),
        "quorum": Integer(0, 50),
        "witnesses": ListOf(Object({"url": Text(max_length=500), "vkey": Text(max_length=300)}), 1, 50),
    },
    title="sla-ledger witnesses v1",
)


class HttpWitness:
    """A witness at a submission prefix (``ledger.app.log.cosigning.WitnessConnection``)."""

    def __init__(self, url: SplitResult, key: WitnessKey, timeout_s: float = TIMEOUT_S) -> None:
        self.key = key
        self._url = url
        self._timeout_s = timeout_s

    def add_checkpoint(self, body: bytes) -> WitnessAnswer:
        """One request; nothing is followed, and at most MAX_ANSWER_BYTES are read."""
        https = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=self._timeout_s)
        try:
            path = f"{self._url.path.rstrip('/')}/add-checkpoint"
            connection.request("POST", path, body, {"Content-Type": "text/plain; charset=utf-8"})
            answer = connection.getresponse()
            return WitnessAnswer(answer.status, answer.read(MAX_ANSWER_BYTES))
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise WitnessesUnavailable(f"it did not answer: {str(error) or type(error).__name__}") from error
        finally:
            connection.close()


def witnesses_of(folder: Path) -> tuple[tuple[HttpWitness, ...], int]:
    """The witnesses that a data directory publishes by, and how many must cosign. Raises ``SettingInvalid``."""
    named = os.environ.get(WITNESSES_VARIABLE)
    path = Path(named) if named else folder / WITNESSES_FILE
    return read_witnesses(path) if named or path.exists() else ((), 0)


def read_witnesses(path: Path) -> tuple[tuple[HttpWitness, ...], int]:
    """The witnesses of a file and how many of them must cosign. Raises ``SettingInvalid`` naming the file."""
    try:
        document = parse_json(path.read_bytes(), max_bytes=_MAX_FILE_BYTES)
        WITNESSES.check(document, "")
        found = tuple(
            HttpWitness(_prefix(each["url"]), parse_witness_vkey(each["vkey"])) for each in document["witnesses"]
        )
        policy = WitnessPolicy(tuple(witness.key for witness in found), document["quorum"])
    except (OSError, ValueError, SlaLedgerError) as error:
        reason = error.message if isinstance(error, SlaLedgerError) else error
        raise SettingInvalid(f"{path} does not name witnesses: {reason}", setting="witnesses") from error
    return found, policy.quorum


def _prefix(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{url[:100]!r} is not an http or https address without query, fragment and user")
    _ = parts.port  # raises ValueError where it is no port
    return parts
