"""What a verifier checks of the batch roots that a bundle names (docs/attestation-format.md, section 12).

A root shows that its issuer published the statement, beside a state of its ledger, no later than a block of some
chain; it shows nothing about the proof. The leaf is worked out from the statement, never taken from the bundle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from ledger.attest.checks.case import Case, require
from ledger.attest.checks.chain_checks import Anchorage, asked_line, quantity
from ledger.attest.checks.json_rpc import Ask
from ledger.attest.checks.log_checks import signed_checkpoint
from ledger.attest.checks.report import CHAIN, UNREADABLE, Line, Outcome
from ledger.attest.crypto import evm_tx
from ledger.attest.crypto.batch import batch_node, batch_root, log_id
from ledger.attest.crypto.keccak import address_word
from ledger.domain.record.canonical import canonical_bytes
from ledger.domain.time.instant import SECOND_NS, format_instant_ns
from ledger.errors import SlaLedgerError
from ledger.merkle.checkpoint import Checkpoint
from ledger.merkle.hasher import leaf_hash
from ledger.merkle.verify import verify_inclusion

ASKED: Final = ("root", "root's block", "root's finality")
"""What a node of its chain is asked about a root, by the ends of the names of the lines."""
SHOWN: Final = ASKED[:2]
"""Those of them that show that a root stands, final or not."""

SEALS: Final = "seals"
"""How the name of the line ends that bounds when blocks were sealed by a chain's clock."""

_TWICE: Final = "another node that was given is on this chain, and one is asked"

_ANCHORED_AT: Final = "anchoredAt(address,bytes32)"

Root = Mapping[str, Any]
Nodes = Mapping[int, Ask]
"""The nodes that were given, by the ids of their chains."""


def roots_of(case: Case) -> Sequence[Root]:
    """The roots that a bundle names."""
    return tuple(case.bundle.get("roots", ()))


def root_lines(case: Case, trust: Mapping[str, Any] | None) -> Iterator[Line]:
    """A line for each root, and one for its pin."""
    ids = [int(root["chain_id"]) for root in roots_of(case)]
    for root in roots_of(case):
        name = f"root on chain {root['chain_id']}"
        try:
            require(ids == sorted(set(ids)), "there is one root of each chain, by chain id")
            yield Line(name, Outcome.PASS, _published(case, root, trust))
        except SlaLedgerError as error:
            yield Line(name, Outcome.FAIL, error.message)
        except UNREADABLE as error:
            yield Line(name, Outcome.FAIL, f"cannot be evaluated ({type(error).__name__}: {error})")
        yield _pin(root, trust)


def _published(case: Case, root: Root, trust: Mapping[str, Any] | None) -> str:
    checkpoint = _checkpoint(case, root)
    newest = signed_checkpoint(case)
    forked = checkpoint.size == newest.size and checkpoint.root != newest.root
    require(not forked, f"the checkpoint of size {checkpoint.size} that was anchored is another than the signed one")
    event = case.bundle["statement"]
    path = [bytes.fromhex(node) for node in root["inclusion"]]
    verify_inclusion(event["seq"], checkpoint.size, leaf_hash(canonical_bytes(event["header"])), path, checkpoint.root)
    batched, proved = bytes.fromhex(root["batch_root"][2:]), case.bundle["proof"] is not None
    require((root["siblings"] is not None) == proved, "exactly a statement with a proof has a leaf in the batch")
    if proved:
        siblings = [bytes.fromhex(node[2:]) for node in root["siblings"]]
        require(
            batch_root(case.name.leaf(case.signals.ctx), siblings) == batched,
            "the path does not lead from this statement to the root",
        )
    transaction = evm_tx.decode_transaction(bytes.fromhex(root["raw_transaction"]))
    require(root["tx_hash"] == "0x" + transaction.tx_hash.hex(), "tx_hash is not the hash of the transaction")
    issuer = _issuer(case, root, trust)
    require(root["issuer"] == issuer, f"the root is in the name of {root['issuer']}, not of the issuer {issuer}")
    evm_tx.require_publishes(
        transaction,
        evm_tx.Publication(log_id(checkpoint.origin), checkpoint.size, checkpoint.root, batched),
        chain_id=int(root["chain_id"]),
        registry=root["registry"],
        issuer=issuer,
    )
    what = "the statement's leaf" if proved else "the entry of the statement"
    return f"the issuer's transaction {root['tx_hash'][:18]}... publishes {what} with the log at size {checkpoint.size}"


def _issuer(case: Case, root: Root, trust: Mapping[str, Any] | None) -> str:
    """Who may publish: the agreement's issuer, or whom the trust file names for the chain."""
    pinned = _pinned(root, trust)
    return str(
        case.agreement.issuer.evm_address if pinned is None else pinned.get("issuer", case.agreement.issuer.evm_address)
    )


def _pinned(root: Root, trust: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What the trust file says of a root's chain, if it names it."""
    if trust is None:
        return None
    if trust["chain_id"] == root["chain_id"]:
        return {"chain_id": trust["chain_id"], "registry": trust["registry"]}
    return next((each for each in trust.get("root_chains", ()) if each["chain_id"] == root["chain_id"]), None)


def _pin(root: Root, trust: Mapping[str, Any] | None) -> Line:
    name, pinned = f"pin: root on chain {root['chain_id']}", _pinned(root, trust)
    if trust is None:
        return Line(name, Outcome.ASSUMED, "nothing is pinned; anyone could have made this")
    if pinned is None:
        return Line(name, Outcome.NOT_CHECKED, "the trust file does not name this chain (root_chains)")
    if pinned["registry"] != root["registry"]:
        return Line(name, Outcome.FAIL, f"{root['registry']} is not pinned; the trust file has {pinned['registry']}")
    return Line(name, Outcome.PASS, "as pinned")


def _checkpoint(case: Case, root: Root) -> Checkpoint:
    return Checkpoint(signed_checkpoint(case).origin, root["size"], bytes.fromhex(root["root"]))


# --- what nodes say ---


class _RootAnchorage(Anchorage):
    """A root as a node of its chain shows it."""

    def __init__(self, case: Case, root: Root, ask: Ask) -> None:
        super().__init__(case, ask)
        self._root = root

    def published(self) -> str:
        return f"the registry {self._registry} has the batch since Unix second {self._anchored_s}"

    def sealed(self) -> str:
        """The statement names the telemetry root, so what it is counted from is no younger than its batch."""
        bound = format_instant_ns(self._anchored_s * SECOND_NS)
        return f"every block was sealed no later than {bound}, when the statement that names them was published"

    @cached_property
    def _anchored_s(self) -> int:
        node = batch_node(_checkpoint(self._case, self._root), bytes.fromhex(self._root["batch_root"][2:]))
        issuer = self._root["issuer"]
        at_s = int.from_bytes(self._call(_ANCHORED_AT, address_word(issuer, "issuer"), node), "big")
        # An instant has 63 bits of nanoseconds; a later one is no time that an honest chain shows.
        require(0 < at_s < 2**63 // SECOND_NS, f"{issuer} published no such batch at the registry {self._registry}")
        return at_s

    @property
    def _registry(self) -> str:
        return str(self._root["registry"])

    @property
    def _placed(self) -> Mapping[str, Any]:
        return self._root


def roots_on_chain(case: Case, nodes: Nodes) -> Iterator[Line]:
    """What nodes of their chains say of the roots; a root whose chain no node was given for is not asked about.

    A chain without the registry has one line that says so.
    """
    for root in roots_of(case):
        ask = nodes.get(int(root["chain_id"]))
        if ask is None:
            continue
        seen = _RootAnchorage(case, root, ask)
        there = asked_line(f"{CHAIN} {root['chain_id']}: {ASKED[0]}", seen.registry_code)
        if there.outcome is Outcome.FAIL:
            yield there
            continue
        for name, check in zip(ASKED, (seen.published, seen.block, seen.final), strict=True):
            yield asked_line(f"{CHAIN} {root['chain_id']}: {name}", check)
        if case.bundle["telemetry"] is not None:
            yield asked_line(f"{CHAIN} {root['chain_id']}: {SEALS}", seen.sealed)


def unsure_when(bundle: Mapping[str, Any], standing: Collection[str]) -> str:
    """What stays open of when the blocks were sealed; ``standing`` are the checks that passed."""
    bounded = any(f"{CHAIN} {root['chain_id']}: {SEALS}" in standing for root in bundle.get("roots", ()))
    return "how long before the batch root the blocks were sealed" if bounded else "when the blocks were sealed"


def routed(case: Case, asks: Sequence[Ask], *, recorded: bool = True) -> tuple[Ask | None, Nodes, tuple[Line, ...]]:
    """Which node is asked about the anchor, which about each chain's root, and a line for each that is asked nothing.

    The chain that a node names decides. One that is silent, or on no chain of the bundle, is asked about the anchor
    where no other is and the statement is ``recorded``, so that its lines say so.
    """
    context = case.bundle["context"]
    home = None if context is None else int(context["chain_id"])
    of_roots = {int(root["chain_id"]) for root in roots_of(case)}
    nodes: dict[int, Ask] = {}
    unasked: list[Line] = []
    lost: list[tuple[Ask, Line]] = []
    for ask in asks:
        try:
            found = quantity(ask("eth_chainId"))
        except (SlaLedgerError, *UNREADABLE) as error:
            said = error.message if isinstance(error, SlaLedgerError) else f"a node answers nonsense ({error})"
            lost.append((ask, Line(f"{CHAIN}: node", Outcome.NOT_CHECKED, said)))
            continue
        name = f"{CHAIN} {found}: root"
        if found in nodes:
            unasked.append(Line(name, Outcome.NOT_CHECKED, f"{_TWICE}; verify again with this one alone"))
        elif found == home or found in of_roots:
            nodes[found] = ask
        else:
            lost.append((ask, Line(name, Outcome.NOT_CHECKED, "the bundle names no root on this chain")))
    anchor = None if home is None else nodes.get(home)
    if anchor is None and lost and recorded:
        anchor = lost.pop(0)[0]
    return anchor, nodes, (*unasked, *(line for _, line in lost))
