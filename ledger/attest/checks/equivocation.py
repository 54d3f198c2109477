"""Proofs that a log said two things in one place: two entries with one stream and version, both under its signature.

Every place of a stream is taken once. A log that shows the customer one seal of a block and somebody else another one
has signed two trees, or put both into one; whoever holds both entries with their checkpoints can show it to anybody,
without either party's help. An entry commits to its payload and does not tell it, so the proof gives away no counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from ledger.attest.checks.bundle_schema import BUNDLE, EQUIVOCATION, EQUIVOCATION_FORMAT, HEADER, MAX_BUNDLE_BYTES
from ledger.attest.checks.case import bundle_events, require
from ledger.attest.checks.pins import pinned_logs
from ledger.attest.checks.verification import Exit, Line, Outcome, read_document
from ledger.attest.crypto import signing
from ledger.domain.record.canonical import canonical_bytes, parse_canonical, parse_json
from ledger.errors import BundleCheckFailed, DocumentInvalid, NotFound, SlaLedgerError
from ledger.merkle.checkpoint import Checkpoint, open_checkpoint
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.note import parse_vkey
from ledger.merkle.tlog_proof import HEADER as TLOG_PROOF
from ledger.merkle.tlog_proof import MAX_EXTRA_BYTES, parse_tlog_proof
from ledger.merkle.verify import verify_inclusion

PINNED = "pin: log"

Leaf = Mapping[str, Any]
"""An entry with its position, its path, and the checkpoint and key that the path leads to."""


@dataclass(frozen=True, slots=True)
class EquivocationReport:
    """What was checked of a proof, line by line."""

    lines: tuple[Line, ...]

    @property
    def exit_code(self) -> Exit:
        """0: the pinned log equivocated; 1: the file does not show it; 3: some log did, and none is pinned."""
        outcomes = {line.outcome for line in self.lines}
        if Outcome.FAIL in outcomes:
            return Exit.FAILED
        return Exit.NOT_PINNED if Outcome.ASSUMED in outcomes else Exit.HOLDS


def leaves_in(data: bytes, vkey: str | None) -> tuple[Leaf, ...]:
    """The entries that a bundle or a tlog-proof shows, each with its path and checkpoint.

    ``vkey`` is the verifier key of the log for a tlog-proof, which does not name it. Raises ``DocumentInvalid``.
    """
    if data.startswith(TLOG_PROOF.encode()):
        return (_of_tlog_proof(data, vkey),)
    bundle = read_document(parse_json(data, max_bytes=MAX_BUNDLE_BYTES), BUNDLE, "bundle")
    return tuple(
        {"seq": event["seq"], "header": event["header"], "inclusion": event["inclusion"], **bundle["log"]}
        for event in bundle_events(bundle)
    )


def prove(leaves: Iterable[Leaf]) -> bytes:
    """The proof from two of these entries that stand in one place and differ; raises ``NotFound`` where none do.

    What it makes holds: entries that their log did not sign are no evidence, and are passed over.
    """
    for first, second in _clashes(leaves):
        found = canonical_bytes({"format": EQUIVOCATION_FORMAT, "leaves": [dict(first), dict(second)]})
        if check(read_equivocation(found)).exit_code is not Exit.FAILED:
            return found
    raise NotFound(
        "no two signed entries in these files have one stream and version and differ; what they show does not "
        "contradict itself"
    )


def read_equivocation(data: bytes) -> Mapping[str, Any]:
    """A proof from its exact canonical bytes; raises ``DocumentInvalid`` or ``NotCanonical``."""
    return read_document(parse_canonical(data, max_bytes=MAX_BUNDLE_BYTES), EQUIVOCATION, "equivocation proof")


def check(document: Mapping[str, Any], trust: Mapping[str, Any] | None = None) -> EquivocationReport:
    """Check a proof that ``read_equivocation`` gave, against the pinned log where there is one. Never raises."""
    first, second = document["leaves"]
    lines = [_line("place", lambda: _place(first, second))]
    lines += [_line(f"entry {name}", partial(_logged, leaf)) for name, leaf in (("A", first), ("B", second))]
    lines.append(_line("one log", lambda: _one_log(first, second)))
    if trust is None:
        lines.append(Line(PINNED, Outcome.ASSUMED, "nothing is pinned; anyone could have made a log that says this"))
    else:
        lines.append(_line(PINNED, lambda: _pinned(trust, first, second)))
    return EquivocationReport(tuple(lines))


def _clashes(leaves: Iterable[Leaf]) -> Iterator[tuple[Leaf, Leaf]]:
    places: dict[tuple[Any, ...], list[Leaf]] = {}
    for leaf in leaves:
        places.setdefault(_where(leaf), []).append(leaf)
    for found in places.values():
        # Each by itself first: of a thousand entries that nobody signed there are half a million pairs.
        signed = [leaf for leaf in found if _line("entry", partial(_logged, leaf)).outcome is Outcome.PASS]
        yield from (pair for pair in combinations(signed, 2) if pair[0]["header"] != pair[1]["header"])


def _of_tlog_proof(data: bytes, vkey: str | None) -> Leaf:
    if vkey is None:
        raise DocumentInvalid("a tlog-proof does not name its log's key; give it with --vkey", path="vkey")
    proof = parse_tlog_proof(data)
    if proof.extra is None:
        raise DocumentInvalid(
            "the tlog-proof has no entry with it (extra), so it says nothing of a place", path="extra"
        )
    header = read_document(parse_canonical(proof.extra, max_bytes=MAX_EXTRA_BYTES), HEADER, "entry of the tlog-proof")
    inclusion = [node.hex() for node in proof.path]
    checkpoint = proof.checkpoint.decode()
    return {"seq": proof.index, "header": header, "inclusion": inclusion, "vkey": vkey, "checkpoint": checkpoint}


def _where(leaf: Leaf) -> tuple[Any, ...]:
    return tuple(leaf["header"][name] for name in ("tenant", "stream", "version"))


def _place(first: Leaf, second: Leaf) -> str:
    (tenant, stream, version), other = _where(first), _where(second)
    require((tenant, stream, version) == other, "the entries stand in two places, as entries of any log do")
    require(canonical_bytes(first["header"]) != canonical_bytes(second["header"]), "both are the same entry")
    return f"two entries are version {version} of {stream} of tenant {tenant}"


def _logged(leaf: Leaf) -> str:
    checkpoint = _checkpoint(leaf)
    path = [bytes.fromhex(node) for node in leaf["inclusion"]]
    verify_inclusion(leaf["seq"], checkpoint.size, leaf_hash(canonical_bytes(leaf["header"])), path, checkpoint.root)
    return f"{leaf['header']['type']} {leaf['header']['id']} is entry {leaf['seq']} of {checkpoint.size} signed ones"


def _one_log(first: Leaf, second: Leaf) -> str:
    origins = [_checkpoint(leaf).origin for leaf in (first, second)]
    require(origins[0] == origins[1], f"{origins[0]} and {origins[1]} are two logs, and each may say what it likes")
    return f"both are signed by {origins[0]}"


def _pinned(trust: Mapping[str, Any], first: Leaf, second: Leaf) -> str:
    for leaf in (first, second):
        checkpoint = _checkpoint(leaf)
        found = {"origin": checkpoint.origin, "vkey": leaf["vkey"]}
        if found not in pinned_logs(trust, checkpoint.size):
            raise BundleCheckFailed(f"{checkpoint.origin} with {leaf['vkey']} is not pinned at size {checkpoint.size}")
    return "both keys are pinned"


def _checkpoint(leaf: Leaf) -> Checkpoint:
    vkey = parse_vkey(leaf["vkey"])
    return open_checkpoint(leaf["checkpoint"].encode(), vkey.name, [vkey], signing.verify).checkpoint


def _line(name: str, established: Callable[[], str]) -> Line:
    try:
        return Line(name, Outcome.PASS, established())
    except SlaLedgerError as error:
        return Line(name, Outcome.FAIL, error.message)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return Line(name, Outcome.FAIL, f"cannot be evaluated ({type(error).__name__}: {error})")
