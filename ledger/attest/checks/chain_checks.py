"""What a node says of a bundle's anchor, check by check (docs/attestation-format.md, section 12, "Asking a node").

The bundle's own values are never compared with each other here, only with the node's answers, and those with each
other. A node can lie about everything: each sentence is "by this node". Functions return what was established,
raise ``BundleCheckFailed`` where the chain says something else, ``Unsettled`` where it may yet change, and
``ChainUnavailable`` where the node does not say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from ledger.attest.checks.case import Case, require
from ledger.attest.checks.json_rpc import Ask
from ledger.attest.checks.report import CHAIN, UNREADABLE, Line, Outcome
from ledger.attest.crypto.keccak import keccak256, keccak_text, to_checksum_address, uint_word
from ledger.domain.attested import EMBEDDED_CHAIN_ID
from ledger.errors import ChainUnavailable, SlaLedgerError

RECORDED_SIGNATURE: Final = (
    "StatementRecorded(bytes32,uint256,bytes32,uint64,uint64,uint32,uint32,bytes32,bytes32,bytes32,address)"
)
CREDIT_SIGNATURE: Final = "IncidentCreditRecorded(bytes32,uint256,uint256,bytes32,bytes32,address)"
_RECORD_OF: Final = "recordOf(bytes32,uint64,uint64,uint32,uint256,bytes32)"
_VERIFIER_OF: Final = "verifierOf(bytes32)"
_QUANTITY: Final = re.compile(r"0x(0|[1-9a-f][0-9a-f]{0,63})")
_DATA: Final = re.compile(r"0x([0-9a-fA-F]{2})*")
_WORD: Final = 32


class Unsettled(Exception):
    """True by this node today, and it may be otherwise tomorrow; the text says what."""


class Anchorage:
    """A bundle's anchor as a node shows it; each answer is asked for once. ``ask`` as in ``json_rpc``."""

    def __init__(self, case: Case, ask: Ask) -> None:
        self._case = case
        self._ask = ask

    def checks(self) -> dict[str, Callable[[], str]]:
        """The checks by the names that stand in a report, in their order."""
        return {
            "id": self.chain_id,
            "registry": self.registry_code,
            "block": self.block,
            "event": self.event,
            "record": self.record,
            "verifier": self.verifier,
            "final": self.final,
            "newest": self.newest,
        }

    def chain_id(self) -> str:
        found, expected = quantity(self._ask("eth_chainId")), int(self._context["chain_id"])
        embedded = "that is the embedded chain, which no node has: verify without --rpc"
        do = embedded if expected == EMBEDDED_CHAIN_ID else f"ask a node of chain {expected} (--rpc)"
        require(found == expected, f"the node is on chain {found}, the statement on chain {expected}; {do}")
        return f"the node is on chain {found}"

    def registry_code(self) -> str:
        code = _data(self._ask("eth_getCode", self._registry, "latest"))
        require(
            bool(code),
            f"no contract is at the registry's address {self._registry} on this node's chain, which was started anew "
            "or is another one with the same id; ask a node of the chain that is meant (--rpc)",
        )
        return f"{len(code)} bytes of code at {self._registry}, as pinned by address alone"

    def block(self) -> str:
        placed, receipt = self._placed, self._receipt
        require(quantity(receipt.get("status")) == 1, "the anchoring transaction failed: nothing was recorded by it")
        number, block_hash = quantity(receipt.get("blockNumber")), _data(receipt.get("blockHash"), _WORD)
        standing = self._block(hex(number))
        require(standing is not None, f"the node has no block {number} any more")
        same = _data(standing.get("hash"), _WORD) == block_hash
        require(same, f"block {number} is another one now: the one with the transaction was reorganised away")
        listed = standing.get("transactions")
        held = isinstance(listed, list) and placed["tx_hash"] in [str(each).lower() for each in listed]
        require(held, f"block {number} does not hold the transaction {placed['tx_hash']}")
        said = placed["block_number"], bytes.fromhex(placed["block_hash"][2:])
        where = f"the transaction stands in block {number} (0x{block_hash.hex()})"
        require(said == (number, block_hash), f"{where}, not in the one the bundle names; ask for a newer bundle")
        return f"the transaction succeeded in block {number}"

    def event(self) -> str:
        verifier = to_checksum_address(self._verifier_in_event)
        found = f"the registry emitted StatementRecorded with this slaId, ctx and leaf, checked by {verifier}"
        if self._case.second is None:
            return found
        return f"{found}, and IncidentCreditRecorded, checked by {to_checksum_address(self._incident_verifier)}"

    def record(self) -> str:
        require(any(self._slot), "the registry holds no record of this statement")
        case = self._case
        verifiers = (self._verifier_in_event, *(() if case.second is None else (self._incident_verifier,)))
        expected = keccak256(
            case.sla_id + case.name.proof_hash + b"".join(bytes(12) + address for address in verifiers)
        )
        # The lowest bit of the slot is not of the hash: it says whether a later version replaced this one.
        same = self._slot[:-1] == expected[:-1] and self._slot[-1] | 1 == expected[-1] | 1
        require(same, "the registry holds a record of another proof or verifier")
        return "the registry's slot of this statement holds this proof and its verifier"

    def verifier(self) -> str:
        shown = self._require_verifier(self._case.one.circuit_id, self._verifier_in_event)
        if self._case.second is None:
            return f"the verifier {shown} has the code that was added for this circuit"
        second = self._require_verifier(self._case.second.circuit_id, self._incident_verifier)
        return f"the verifiers {shown} and {second} have the code that was added for these circuits"

    def _require_verifier(self, circuit_id: bytes, said: bytes) -> str:
        words = self._call(_VERIFIER_OF, circuit_id, words=3)
        address, retired_at_s, code_hash = words[12:32], int.from_bytes(words[32:64], "big"), words[64:]
        require(address == said, "the registry has another verifier for this circuit")
        shown = to_checksum_address(address)
        code = _data(self._ask("eth_getCode", shown, "latest"))
        require(keccak256(code) == code_hash, f"the code of the verifier {shown} is not the one that was added")
        if retired_at_s:
            raise Unsettled(f"the verifier {shown} was retired at Unix second {retired_at_s}: ask why")
        return shown

    def final(self) -> str:
        number, head = quantity(self._receipt.get("blockNumber")), quantity(self._ask("eth_blockNumber"))
        finalized, safe = (self._height(tag) for tag in ("finalized", "safe"))
        confirmations = max(head - number + 1, 0)
        if finalized is not None and number <= finalized:
            return f"block {number} is final: {confirmations} confirmations, finalized up to {finalized}"
        standing = "safe" if safe is not None and number <= safe else "not safe yet"
        raise Unsettled(f"block {number} is not final: {confirmations} confirmations, {standing}; it may be dropped")

    def newest(self) -> str:
        require(any(self._slot), "the registry holds no record of this statement")
        if self._slot[-1] & 1:
            raise Unsettled(f"superseded: a later version than {self._version} of this period is recorded; ask for it")
        return f"version {self._version} is the newest that is recorded of this period"

    # --- what the bundle says ---

    @property
    def _context(self) -> Mapping[str, Any]:
        context = self._case.bundle["context"]
        require(context is not None, "the bundle names no chain and registry")
        return dict(context)

    @property
    def _registry(self) -> str:
        return str(self._context["registry"])

    @property
    def _placed(self) -> Mapping[str, Any]:
        placed = self._case.bundle["anchor"]
        require(placed is not None, "the bundle names no transaction")
        return dict(placed)

    @property
    def _version(self) -> int:
        return self._case.proofs_before + 1

    # --- what the node says ---

    @cached_property
    def _receipt(self) -> Mapping[str, Any]:
        tx_hash = self._placed["tx_hash"]
        receipt = self._ask("eth_getTransactionReceipt", tx_hash)
        require(receipt is not None, f"no block of the node's chain holds the transaction {tx_hash}")
        require(isinstance(receipt, dict), "the receipt is no object")
        same = str(receipt.get("transactionHash")).lower() == tx_hash
        require(same, "the node gives the receipt of another transaction")
        return dict(receipt)

    @cached_property
    def _verifier_in_event(self) -> bytes:
        """The address of the verifier in the registry's event about this statement."""
        case, logs = self._case, self._receipt.get("logs")
        require(isinstance(logs, list), "the receipt has no logs")
        topics = [
            keccak_text(RECORDED_SIGNATURE),
            case.sla_id,
            uint_word(case.signals.ctx, 256, "ctx"),
            case.name.leaf(case.signals.ctx),
        ]
        found = [log for log in self._receipt["logs"] if _emitted(log, self._registry, topics[0])]
        require(
            bool(found),
            f"the registry {self._registry} emitted nothing in this transaction: "
            "the statement was recorded by another one before, or at another registry",
        )
        require(len(found) == 1, "the transaction records more than one statement")
        require([_data(topic, _WORD) for topic in found[0]["topics"]] == topics, "the event is of another statement")
        span, data = case.period.interval, _data(found[0].get("data"), 8 * _WORD)
        numbers = (span.start_ns, span.end_ns, case.issued["terms_version"], self._version)
        words = [number.to_bytes(_WORD, "big") for number in numbers]
        words += [case.name.circuit_id, case.name.signals_hash, case.name.proof_hash]
        require(data[: 7 * _WORD] == b"".join(words), "the event is of another period, version, circuit or proof")
        return data[-20:]

    @cached_property
    def _incident_verifier(self) -> bytes:
        """The address of the second verifier in the registry's event about the incident credit."""
        case = self._case
        second = case.incident_one
        credit = uint_word(case.incident_signals.credit, 256, "credit")
        topics = [keccak_text(CREDIT_SIGNATURE), case.sla_id, uint_word(case.signals.ctx, 256, "ctx"), credit]
        found = [log for log in self._receipt["logs"] if _emitted(log, self._registry, topics[0])]
        require(len(found) == 1, "the transaction records no incident credit, or more than one")
        same = [_data(topic, _WORD) for topic in found[0]["topics"]] == topics
        require(same, "the event is of another statement or credit")
        data = _data(found[0].get("data"), 3 * _WORD)
        same = data[: 2 * _WORD] == case.one.circuit_id + second.circuit_id
        require(same, "the event is of other circuits")
        return data[-20:]

    @cached_property
    def _slot(self) -> bytes:
        """What the registry holds of this statement, zero where nothing."""
        case, span = self._case, self._case.period.interval
        return self._call(
            _RECORD_OF,
            case.sla_id,
            uint_word(span.start_ns, 64, "start"),
            uint_word(span.end_ns, 64, "end"),
            uint_word(self._version, 32, "statementVersion"),
            uint_word(case.signals.ctx, 256, "ctx"),
            case.name.signals_hash,
        )

    def _block(self, which: str) -> Any:
        block = self._ask("eth_getBlockByNumber", which, False)
        require(block is None or isinstance(block, dict), "the block is no object")
        return block

    def _height(self, tag: str) -> int | None:
        block = self._block(tag)
        return None if block is None else quantity(block.get("number"))

    def _call(self, signature: str, *arguments: bytes, words: int = 1) -> bytes:
        data = keccak_text(signature)[:4] + b"".join(arguments)
        asked = {"to": self._registry, "data": "0x" + data.hex()}
        answer = _data(self._ask("eth_call", asked, "latest"))
        name = signature.partition("(")[0]
        require(len(answer) == words * _WORD, f"no registry of this kind answers {name} at {self._registry}")
        return answer


def on_chain(case: Case, ask: Ask) -> Iterator[Line]:
    """What the node says, one line for each check. One that does not name this chain, or does not have the registry on
    it, is asked no more: whatever else it says is of something else."""
    if case.bundle["proof"] is None:
        yield Line("anchor", Outcome.NOT_CHECKED, "an unproved statement stands on no chain")
        return
    for name, check in Anchorage(case, ask).checks().items():
        line = asked_line(f"{CHAIN}: {name}", check)
        yield line
        if (name == "id" and line.outcome is not Outcome.PASS) or (name == "registry" and line.outcome is Outcome.FAIL):
            return


def asked_line(name: str, check: Callable[[], str]) -> Line:
    """A line of a report about what a node was asked for."""
    try:
        return Line(name, Outcome.PASS, f"{check()}, by this node")
    except Unsettled as unsettled:
        return Line(name, Outcome.ASSUMED, f"{unsettled} (by this node)")
    except ChainUnavailable as silence:
        return Line(name, Outcome.NOT_CHECKED, silence.message)
    except SlaLedgerError as error:
        return Line(name, Outcome.FAIL, error.message)
    except UNREADABLE as error:
        return Line(name, Outcome.FAIL, f"cannot be evaluated ({type(error).__name__}: {error})")


def _emitted(log: Any, registry: str, topic: bytes) -> bool:
    if not isinstance(log, dict) or not isinstance(log.get("topics"), list) or not log["topics"]:
        return False
    return str(log.get("address")).lower() == registry.lower() and log["topics"][0] == "0x" + topic.hex()


def quantity(value: Any) -> int:
    """A number as a node writes it; raises ``BundleCheckFailed``."""
    fits = isinstance(value, str) and _QUANTITY.fullmatch(value) is not None
    require(fits, f"the node answers {value!r:.80} where a number belongs")
    return int(value, 16)


def _data(value: Any, length: int | None = None) -> bytes:
    fits = isinstance(value, str) and _DATA.fullmatch(value) is not None
    fits = fits and length in (None, len(value) // 2 - 1)
    require(fits, f"the node answers {value!r:.80} where bytes belong")
    return bytes.fromhex(value[2:])
