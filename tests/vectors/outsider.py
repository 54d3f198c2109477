"""A verifier that needs docs/attestation-format.md and nothing of this package: standard library, py_ecc, Ed25519, and
the time zones of tzdata.

It takes the steps of section 12 one by one and says of each what became of it. What it does not do is in
``NOT_HERE``. Where the page did not say enough to write it, the page was mended.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from tests.vectors import outsider_chain as chain
from tests.vectors import outsider_log as log
from tests.vectors.outsider_credit import (
    STATES,
    differences,
    possible_states,
    price,
    rules_beside,
    same,
    trace,
    trace_under_caps,
)
from tests.vectors.outsider_hashes import R, h, keccak, poseidon, signed_root, tag, words
from tests.vectors.outsider_incidents import LISTED, counted, full_trace, require_amount, require_second, rule_of
from tests.vectors.outsider_shapes import BadInput, jcs, read, require_shape
from tests.vectors.outsider_terms import Period, Span, Terms, of_date, union

NOT_HERE = (
    "whether the members of an agreement make sense together (docs/agreement.md)",
    "the steps of a credit that lost time or recorded charges add to",
    "what a node of the chain says",
)
HOLDS, FAILED, BAD_INPUT, NOT_PINNED = 0, 1, 2, 3
PASS, FAIL, NOT_CHECKED, ASSUMED = "PASS", "FAIL", "NOT CHECKED", "ASSUMED"
TEST_CHAINS = ("31337", "131277322940537")
HOUR = 3600 * 10**9
SEEN = ("good", "valid")


def verify(data: bytes, trust: bytes | None = None, opening: bytes | None = None) -> dict[str, str]:
    """What became of each step; raises ``BadInput`` for bytes that are no bundle, trust file or opening."""
    bundle = Bundle(data)
    pins = None if trust is None else document(trust, 2**16, "trust")
    given = None if opening is None else document(opening, 2**22, "opening")
    lines = {}
    for name, step in bundle.steps(pins, given):
        try:
            lines[name] = step() or PASS
        except (ArithmeticError, AssertionError, AttributeError, BadInput, LookupError, OSError, TypeError, ValueError):
            # Whatever a check cannot evaluate fails.
            lines[name] = FAIL
    return lines


def exit_code(lines: dict[str, str], *, accept_dev: bool) -> int:
    if FAIL in lines.values():
        return FAILED
    assumed = {name for name, outcome in lines.items() if outcome == ASSUMED}
    return NOT_PINNED if assumed - ({"dev key"} if accept_dev else set()) else HOLDS


def document(data: bytes, limit: int, shape: str) -> Any:
    found = read(data, limit, exact=False)
    require_shape(found, shape)
    return found


def pinned(trust: Any, key: dict[str, str], size: int) -> bool:
    """Whether a key of a log is pinned for a checkpoint of a size."""
    bounded = [each for each in trust.get("log_keys", ()) if each["vkey"] == key["vkey"]]
    inside = [e for e in bounded if e["from_size"] <= size and (e["until_size"] is None or size < e["until_size"])]
    unbounded = not bounded and key["vkey"] == trust["log"]["vkey"]
    return key["origin"] == trust["log"]["origin"] and (unbounded or bool(inside))


class Bundle:
    """A bundle and what follows from it. A step raises where it does not hold."""

    def __init__(self, data: bytes) -> None:
        self.doc: Any = read(data, 2**22, exact=True)
        require_shape(self.doc, "bundle")
        self.issued: Any = self.doc["statement"]["payload"]

    def steps(self, trust: Any, opening: Any) -> list[tuple[str, Callable[[], str | None]]]:
        found: list[tuple[str, Callable[[], str | None]]] = [
            ("2 issuer signature", self.issuer_signature),
            ("3 agreement", self.agreed),
            ("4 period", self.in_period),
            ("4 notice", self.noticed),
            ("5 log", self.logged),
            ("5 restatement", self.restated),
            ("6 telemetry", self.sealed),
            ("8 announcements", self.announced),
            ("9 verdict", self.verdict),
        ]
        if self.doc["telemetry"] is not None:
            found += [("6 seal times", self.seal_times), ("6 probe", self.probed)]
        if self.doc["proof"] is not None:
            found += [
                ("7 context", self.in_context),
                ("8 summary", self.summary),
                ("9 credit signal", self.credit_signal),
                ("10 key", self.key),
                ("10 proof", self.proof),
                ("11 anchor", self.anchor),
                ("dev key", lambda: ASSUMED if any(each["manifest"]["dev_unsafe"] for each in self.proofs) else PASS),
            ]
            if "incident_proof" in self.doc:
                found += [
                    ("9 incidents", self.incidents),
                    ("10 incident key", self.incident_key),
                    ("10 incident proof", self.incident_proof),
                ]
        if opening is not None:
            found.append(("opening", lambda: self.opened(opening)))
        if trust is not None and "witnesses" in trust:
            asked = trust["witnesses"]
            found.append(("12 witnesses", lambda: log.witnesses(self.checkpoint, asked["vkeys"], asked["quorum"])))
        for at, root in enumerate(self.doc.get("roots", ())):
            found.append((f"11 root {at}", lambda root=root: self.published(root, trust)))
            found.append((f"13 root {at}", lambda root=root: self.root_pin(root, trust)))
        return [*found, *self.pins(trust)]

    # --- what follows from the agreement ---

    @cached_property
    def terms(self) -> Terms:
        ended_by, plain = self.doc.get("ended_by"), Terms(self.doc["agreement"])
        if ended_by is None:
            return plain
        notice = ended_by["kind"] == "Termination"
        day = of_date(ended_by["effective"] if notice else ended_by["effective"]["from"])
        assert plain.first < day < plain.until
        return Terms(self.doc["agreement"], day)

    @cached_property
    def period(self) -> Period:
        return self.terms.period(self.issued["period"])

    @cached_property
    def windows(self) -> int:
        return self.terms.count(self.period)

    @property
    def sla(self) -> str:
        return "0x" + self.terms.sla_id.hex()

    @cached_property
    def seal_key(self) -> int:
        return self.terms.seal_key(self.period)

    @cached_property
    def results(self) -> list[Any]:
        listed = self.issued["objectives"]
        known = [(each["id"], each["target"]) for each in self.terms.objectives]
        assert [(each["id"], each["target"]) for each in listed] == known
        for each, found in zip(self.terms.objectives, listed, strict=True):
            unit = self.terms.unit(each)
            assert found.get("unit", "requests") == unit
            assert ("unit" in found) == (unit != "requests")
            assert not found.get("undecided") or self.terms.leaves_open(each)
        return list(listed)

    @cached_property
    def reasons(self) -> list[str]:
        said = "has counts that its data leave undecided, which no circuit adds up"
        undecided = [f"{each['id']} {said}" for each in self.results if each.get("undecided")]
        return self.terms.reasons + undecided

    @property
    def withheld(self) -> bool:
        said = self.issued
        return bool(said["observed"] * 10_000 < (said["windows"] - said["excluded"]) * self.terms.floor)

    @cached_property
    def earlier(self) -> list[Any]:
        found = [event["payload"] for event in self.doc.get("previous", ())]
        assert len(found) == self.issued["statement_version"] - 1
        return found

    @cached_property
    def proved_before(self) -> list[Any]:
        return [said for said in self.earlier if said["attestable"] and said["state"] == "settled"]

    @cached_property
    def contexts(self) -> list[int]:
        """The ctx of every version with a proof up to this one, after the 0 before the first."""
        where = self.doc["context"]
        assert chain.is_address(where["registry"])
        found = [0]
        for version in range(1, len(self.proved_before) + 2):
            head = (keccak(b"sla-ledger/ctx/v1"), int(where["chain_id"]), where["registry"], self.terms.sla_id)
            versions = (self.issued["terms_version"], version, found[-1])
            found.append(int.from_bytes(keccak(words(*head, *self.period.span, *versions)), "big") >> 8)
        return found

    @cached_property
    def checkpoint(self) -> log.Checkpoint:
        return log.opened(self.doc["log"]["checkpoint"], self.doc["log"]["vkey"])

    @cached_property
    def signals(self) -> list[int]:
        found = [int(signal) for signal in self.doc["proof"]["signals"]]
        assert all(signal < R for signal in found)
        return found

    # --- steps 2 to 5 ---

    def issuer_signature(self) -> None:
        rest = {name: self.doc[name] for name in self.doc if name != "issuer_signature"}
        key = bytes.fromhex(self.doc["agreement"]["parties"]["issuer"]["ed25519_public_key"])
        assert log.signed(key, b"sla-ledger/bundle/v1\n" + jcs(rest), bytes.fromhex(self.doc["issuer_signature"]))

    def agreed(self) -> None:
        terms = self.terms
        assert all(map(chain.is_address, terms.addresses))
        _require_agreed(terms)
        assert (self.issued["sla_id"], self.issued["doc_sha256"]) == (self.sla, terms.sha256.hex())
        ended_by = self.doc.get("ended_by")
        if ended_by is None:
            return
        if ended_by["kind"] == "Agreement":
            following = Terms(ended_by)
            assert (following.sla_id, following.parties) == (terms.sla_id, terms.parties)
            _require_agreed(following)
            return
        assert ended_by["sla_id"] == self.sla
        assert ended_by["signatures"]
        unsigned = jcs({name: ended_by[name] for name in ended_by if name != "signatures"})
        for name, signature in ended_by["signatures"].items():
            key = bytes.fromhex(terms.parties[name])
            assert log.signed(key, b"sla-ledger/termination/v1\n" + unsigned, bytes.fromhex(signature))

    def in_period(self) -> None:
        said, span = self.issued, self.period.span
        spelled = said["start_ns"], said["end_ns"], said["windows"]
        assert spelled == (str(span.start), str(span.end), self.windows)
        silent = "accepts_until_ns" not in said and "deadline" not in self.terms.doc.get("settlement", {})
        assert silent or said["accepts_until_ns"] == str(self.terms.accepts_until(self.period))
        assert said["idle"] <= said["observed"] <= self.windows
        listed = said.get("exclusions", [])
        assert not listed or self.terms.classes or self.terms.doc.get("carve_outs")
        assert len({each["exclusion_id"] for each in listed}) == len(listed)
        allowed = self.terms.honoured(listed, self.period)
        for each in listed:
            if each["honoured"] is not None:
                part, most = _honoured(each), allowed[each["exclusion_id"]]
                assert most.start <= part.start < part.end <= most.end
        assert said["excluded"] == sum(self.left_out())

    def noticed(self) -> str | None:
        """Of a notice by one party: whether it was logged before its day."""
        ended_by, event = self.doc.get("ended_by", {}), self.doc.get("notice")
        given = ended_by.get("kind") == "Termination"
        assert given or event is None
        if event is not None:
            assert same(event["payload"]["notice"], ended_by)
            version = event["header"]["version"]
            log.require_logged(event, self.checkpoint, "agreement_terminated", f"agreement/{self.sla}", version)
        if not given or len(ended_by["signatures"]) > 1:
            return PASS
        begins = self.terms.starts(of_date(ended_by["effective"]))
        return NOT_CHECKED if event is None or int(event["header"]["recorded_at_ns"]) >= begins else PASS

    def left_out(self) -> list[bool]:
        """Of each window, whether it is left out."""
        out = union([_honoured(each) for each in self.issued.get("exclusions", []) if each["honoured"] is not None])
        spans = self.terms.window_spans(self.period)
        return [any(part.start <= one.start and one.end <= part.end for part in out) for one in spans]

    def logged(self) -> None:
        said, statement, seals = self.issued, self.doc["statement"], self.doc["seals"]
        assert said["statement_id"] == self.name(said["statement_version"])
        self.require_statement(statement, said["statement_version"])
        assert int(statement["header"]["recorded_at_ns"]) >= self.period.span.end
        found = [each for each in self.doc.values() if isinstance(each, dict)]
        found += [each for member in self.doc.values() if isinstance(member, list) for each in member]
        assert {event["header"]["tenant"] for event in found if "header" in event} == {statement["header"]["tenant"]}
        for block, seal in enumerate(seals):
            assert seal["seq"] < statement["seq"]
            payload, place, kind = seal["payload"], block, "block_sealed"
            if "statement_version" in payload:
                place, kind = seal["header"]["version"], "block_resealed"
                assert payload["statement_version"] <= said["statement_version"]
                assert place >= len(seals)
            self.require_turn(seal)
            log.require_logged(seal, self.checkpoint, kind, f"seal/{self.seal_key}", place)

    def require_turn(self, seal: Any) -> None:
        """Sealed before the first version that counts by it, and replaced behind the one before that."""
        versions = [*self.doc.get("previous", ()), self.doc["statement"]]
        rooted = [number for number, one in enumerate(versions, 1) if one["payload"]["telemetry_root"] is not None]
        number = seal["payload"].get("statement_version", rooted[0])
        assert seal["seq"] < versions[number - 1]["seq"]
        if number > 1 and "statement_version" in seal["payload"]:
            assert versions[number - 2]["seq"] < seal["seq"]

    def name(self, version: int) -> str:
        return f"{self.sla[2:14]}.{self.period.first}.v{version}"

    def require_statement(self, event: Any, version: int) -> None:
        stream = f"statement/{self.sla}/{self.period.first}"
        log.require_logged(event, self.checkpoint, "statement_issued", stream, version - 1)

    def restated(self) -> None:
        said, first = self.issued, self.issued["statement_version"] == 1
        members = ("restates", "reason", "objective_deltas", "credit_delta")
        assert all((name in said) != first for name in members)
        assert ("previous" in self.doc) != first
        if first:
            return
        events, before = self.doc["previous"], -1
        for version, event in enumerate(events, 1):
            assert before < event["seq"] < self.doc["statement"]["seq"]
            before = event["seq"]
            self.require_statement(event, version)
            payload = event["payload"]
            assert all(payload[name] == said[name] for name in ("sla_id", "doc_sha256", "terms_version", "period"))
            assert (payload["statement_version"], payload["statement_id"]) == (version, self.name(version))
        assert len(events) == said["statement_version"] - 1
        last = events[-1]
        named = said["restates"]["statement_id"], said["restates"]["event_id"]
        assert named == (last["payload"]["statement_id"], last["header"]["id"])
        for name, delta in differences(last["payload"], said, self.terms.paid["currency"]).items():
            assert same(said[name], delta)

    # --- step 6 ---

    def sealed(self) -> None:
        sealed, said = self.doc["telemetry"], self.issued
        if self.reasons:
            assert sealed is None
            assert not self.doc["seals"]
            assert said["seal_key"] is said["telemetry_root"] is None
            return
        blocks = [int(block) for block in sealed["blocks"]]
        root = str(h("telemetry", [self.seal_key, self.windows, *blocks]))
        assert sealed["windows"] == self.windows
        assert said["telemetry_root"] == sealed["root"] == root
        assert said["seal_key"] == str(self.seal_key)
        for j, (seal, block) in enumerate(zip(self.doc["seals"], blocks, strict=True)):
            payload, inside = seal["payload"], min(25, max(0, self.windows - 25 * j))
            found = tuple(payload[name] for name in ("sla_id", "seal_key", "block", "block_hash", "first_window"))
            assert found == (self.sla, str(self.seal_key), j, str(block), 25 * j)
            assert payload["windows"] == inside
        assert self.signed(self.terms.doc["collector"], sealed["signature"])

    def signed(self, holder: Any, signature: Any) -> bool:
        """Whether a collector or probe signed the root."""
        x, y = (int(holder["babyjubjub_public_key"][axis]) for axis in "xy")
        r8 = int(signature["r8"]["x"]), int(signature["r8"]["y"])
        return signed_root((x, y), int(self.doc["telemetry"]["root"]), r8, int(signature["s"]))

    def seal_times(self) -> str | None:
        spans, on_time = self.terms.window_spans(self.period), True
        for block, seal in enumerate(self.doc["seals"]):
            inside = spans[25 * block : 25 * block + 25]
            end = inside[-1].end if inside else self.period.span.end
            recorded = int(seal["header"]["recorded_at_ns"])
            assert recorded >= end, "sealed before its windows were over"
            on_time &= recorded <= end + self.terms.grace * 10**9 + HOUR
            on_time &= "statement_version" not in seal["payload"]
        return PASS if on_time else NOT_CHECKED

    def probed(self) -> str | None:
        sealed, probe = self.doc["telemetry"], self.doc["agreement"].get("probe")
        if "probe_signature" not in sealed:
            assert probe is None or probe["signature"] == "shown"
            return PASS if probe is None else NOT_CHECKED
        assert self.signed(probe, sealed["probe_signature"])
        return PASS

    # --- steps 7 to 9 ---

    def in_context(self) -> None:
        context, signals = self.doc["context"], self.signals
        previous, ctx = self.contexts[-2:]
        assert (context["prev_ctx"], signals[2]) == (str(previous), ctx)
        assert ("prev_signals" in context) == (len(self.contexts) > 2)
        assert signals[4] == self.terms.hash
        assert str(signals[3]) == self.doc["telemetry"]["root"]
        base = self.terms.base(self.period)
        assert signals[5] == poseidon(tag("base"), self.seal_key, base, int(self.doc["base"]["salt"]))
        if "prev_signals" in context:
            self.require_replaced(context["prev_signals"], previous)
            assert context["prev_signals"][3] == self.proved_before[-1]["telemetry_root"]
        second = "prev_incident_signals" in context
        assert second == ("prev_signals" in context and rule_of(self.terms) is not None)
        if second:
            self.require_replaced(context["prev_incident_signals"], previous)

    def require_replaced(self, texts: list[str], ctx: int) -> None:
        replaced = [int(signal) for signal in texts]
        assert all(signal < R for signal in replaced)
        assert (replaced[2], replaced[4]) == (ctx, self.terms.hash)

    def summary(self) -> None:
        said = self.issued
        shown = sum(STATES.index(found["state"]) << 2 * m for m, found in enumerate(self.results))
        counts = [said[name] for name in ("windows", "observed", "excluded", "idle")]
        assert max(counts) < 1024
        assert said["observed"] + said["excluded"] <= said["windows"]
        assert self.signals[0] == shown + sum(value << 8 + 10 * i for i, value in enumerate(counts))

    def announced(self) -> str | None:
        """Of maintenance that takes something out: whether it was logged before it began."""
        classes, given = self.terms.classes, self.doc.get("announcements", ())
        listed = {
            each["exclusion_id"]: each
            for each in self.issued.get("exclusions", ())
            if each["honoured"] and each["clause"] in classes
        }
        told = {}
        for event in given:
            name = event["payload"]["exclusion_id"]
            members = ("exclusion_id", "clause", "from_ns", "to_ns", "announced_at_ns", "approved_by")
            assert all(same(event["payload"][member], listed[name][member]) for member in members)
            stream, version = f"exclusions/{self.sla}", event["header"]["version"]
            log.require_logged(event, self.checkpoint, "exclusion_recorded", stream, version)
            told[name] = int(event["header"]["recorded_at_ns"])
        late = [name for name, each in listed.items() if name not in told or told[name] > int(each["from_ns"])]
        return NOT_CHECKED if late else PASS

    def verdict(self) -> None:
        said, doc = self.issued, self.doc
        assert said["attestable"] == (not self.reasons)
        assert said["unattested_reasons"] == self.reasons
        assert said["state"] == ("withheld" if self.withheld else "settled")
        due = not self.reasons and not self.withheld
        assert (doc["proof"] is not None) == due
        assert ("incident_proof" in doc) == (due and rule_of(self.terms) is not None)
        if not due:
            assert doc["context"] is doc["base"] is doc["credit_salt"] is doc["anchor"] is None
        for objective, found in zip(self.terms.objectives, self.results, strict=True):
            assert found["good"] + found.get("undecided", 0) <= found["valid"]
            states = {"withheld"} if self.withheld else possible_states(self.terms, objective, found)
            assert found["state"] in states
        if self.withheld:
            assert said["credit"] is None
            assert said["trace"] == {}
            return
        assert said["credit"]["currency"] == self.terms.paid["currency"]
        assert said["credit"]["minor_units"] == said["trace"]["credit"]
        if "charges" in self.terms.paid:
            return
        if self.terms.simple:
            assert same(said["trace"], full_trace(self.terms, self.period, self.results, said["trace"]))
            return
        if all(rule["kind"] == "tiered" for rule in self.terms.paid["rules"]):
            assert same(said["trace"], trace_under_caps(self.terms, self.period, self.results))
            return
        expected = trace(self.terms, self.period, self.results)
        added = {"charges", "rules", "caps", *(["scopes"] if self.terms.scopes else [])}
        assert set(said["trace"]) == set(expected) | added
        assert said["trace"]["charges"] is None
        assert same(self.without_incidents(said["trace"]["rules"]), rules_beside(self.terms, self.period))
        expected["price_per_request"] = price(self.terms)
        for name in TIER_STEPS:
            assert same(said["trace"][name], expected[name])

    @staticmethod
    def without_incidents(rules: list[Any]) -> list[Any]:
        return [{name: rule[name] for name in rule if name not in ("incidents", "amount")} for rule in rules]

    def credit_signal(self) -> None:
        amount, salt = int(self.issued["credit"]["minor_units"]), self.doc["credit_salt"]
        if rule_of(self.terms) is not None:
            amount = self.terms.base(self.period) * self.issued["trace"]["combined_bps"]
        require_amount(self.terms, salt, "credit", self.contexts[-1], amount, self.signals[1])

    def incidents(self) -> None:
        require_second(self.terms, self.seal_key, self.issued, self.signals, self.doc["incident_proof"])
        full_trace(self.terms, self.period, self.results, self.issued["trace"])
        assert int(self.doc["incident_proof"]["signals"][2]) == self.contexts[-1]

    # --- steps 10 to 13 ---

    def key(self) -> None:
        proof, chain_id = self.doc["proof"], self.doc["context"]["chain_id"]
        require_key(proof, f"compliance_{25 * len(self.doc['seals'])}x4", chain_id)

    def incident_key(self) -> None:
        require_key(self.doc["incident_proof"], "incidents_64", self.doc["context"]["chain_id"])

    def proof(self) -> None:
        proof = self.doc["proof"]
        chain.require_proof(proof["verification_key"], self.signals, bytes.fromhex(proof["proof"]))

    def incident_proof(self) -> None:
        proof = self.doc["incident_proof"]
        signals = [int(signal) for signal in proof["signals"]]
        chain.require_proof(proof["verification_key"], signals, bytes.fromhex(proof["proof"]))

    @property
    def proofs(self) -> list[Any]:
        """Those that the terms ask for."""
        second = [self.doc["incident_proof"]] if rule_of(self.terms) is not None else []
        return [self.doc["proof"], *second]

    def anchor(self) -> str:
        placed, context = self.doc["anchor"], self.doc["context"]
        home = [context["chain_id"], context["registry"]]
        if placed is None and home in [[root["chain_id"], root["registry"]] for root in self.doc.get("roots", ())]:
            return NOT_CHECKED
        raw = bytes.fromhex(placed["raw_transaction"])
        assert placed["tx_hash"] == "0x" + keccak(raw).hex()
        sender, to, chain_id, data = chain.sent(raw)
        assert (chain_id, to) == (int(context["chain_id"]), context["registry"])
        assert sender in self.terms.addresses
        replaced = [*context.get("prev_signals", ()), *context.get("prev_incident_signals", ())]
        before = keccak(words(*map(int, replaced))) if replaced else bytes(32)
        head = (self.terms.sla_id, *self.period.span, self.issued["terms_version"], len(self.contexts) - 1)
        assert data == chain.recorded(words(*head, self.contexts[-2], before), self.proofs)
        return PASS

    def published(self, root: Any, trust: Any) -> None:
        chains, note = [int(each["chain_id"]) for each in self.doc["roots"]], self.checkpoint
        assert chains == sorted(set(chains))
        then = note._replace(size=root["size"], root=bytes.fromhex(root["root"]))
        assert then.size != note.size or then == note
        log.require_entry({**self.doc["statement"], "inclusion": root["inclusion"]}, then)
        proof, batch = self.doc["proof"], bytes.fromhex(root["batch_root"][2:])
        assert (root["siblings"] is None) == (proof is None)
        if proof is not None:
            assert chain.batch_root(chain.leaf(self.proofs), root["siblings"]) == batch
        raw, issuer = bytes.fromhex(root["raw_transaction"]), self.terms.addresses[0]
        assert root["tx_hash"] == "0x" + keccak(raw).hex()
        sender, to, chain_id, data = chain.sent(raw)
        issuer = (_chain_pin(root, trust) or {}).get("issuer", issuer)
        assert root["issuer"] == issuer == sender
        assert (chain_id, to) == (int(root["chain_id"]), root["registry"])
        call = words(keccak(note.origin.encode()), then.size, then.root, batch)
        assert data == keccak(chain.PUBLISH.encode())[:4] + call

    def root_pin(self, root: Any, trust: Any) -> str:
        if trust is None:
            return ASSUMED
        pin = _chain_pin(root, trust)
        return NOT_CHECKED if pin is None else PASS if pin["registry"] == root["registry"] else FAIL

    def pins(self, trust: Any) -> list[tuple[str, Callable[[], str | None]]]:
        doc, parties = self.doc, self.doc["agreement"]["parties"]
        lines = doc["log"]["checkpoint"].split("\n")
        size = int(lines[1]) if len(lines) > 1 and re.fullmatch(r"0|[1-9][0-9]{0,18}", lines[1], re.ASCII) else -1
        found: dict[str, Callable[[], bool]] = {
            "log": lambda: pinned(trust, {"origin": lines[0], "vkey": doc["log"]["vkey"]}, size)
        }
        for name in ("issuer", "customer"):
            found[name] = lambda name=name: parties[name]["ed25519_public_key"] == trust[f"{name}_ed25519_public_key"]
        if doc["proof"] is not None and doc["context"] is not None:
            given = {"circuit": doc["proof"], "incident circuit": doc.get("incident_proof")}
            for name, proof in given.items():
                if proof is not None:
                    manifest = {member: proof["manifest"][member] for member in ("circuit_id", "dev_unsafe")}
                    found[name] = lambda manifest=manifest: manifest in trust["circuits"]
            for name, member in (("chain", "chain_id"), ("registry", "registry")):
                found[name] = lambda member=member: doc["context"][member] == trust[member]
        if trust is not None and "tenant" in trust:
            found["tenant"] = lambda: doc["statement"]["header"]["tenant"] == trust["tenant"]
        if trust is None:
            return [(f"13 pin: {name}", lambda: ASSUMED) for name in found]
        return [(f"13 pin: {name}", lambda holds=holds: PASS if holds() else FAIL) for name, holds in found.items()]

    # --- opening ---

    def opened(self, given: Any) -> None:
        """Section 12: counts and salts give root, totals, states and credit."""
        said, ids = self.issued, [each["id"] for each in self.terms.objectives]
        assert given["statement_id"] == said["statement_id"]
        assert len(given["windows"]) == self.windows
        made = []
        for window in given["windows"]:
            assert set(window["cells"]) == set(ids)
            cells = [(window["cells"][name]["good"], window["cells"][name]["bad"]) for name in ids]
            assert window["state"] == "observed" or not any(map(any, cells))
            word = sum(good << 56 * m | bad << 56 * m + 28 for m, (good, bad) in enumerate(cells))
            made.append(word | (window["state"] == "observed") << 224 | (window["state"] == "excluded") << 225)
        salts = [int(salt) for salt in given["salts"]]
        assert len(made) <= 25 * len(salts)
        padded = made + [0] * (25 * len(salts) - len(made))
        blocks = [h("block", [self.seal_key, j, *padded[25 * j : 25 * j + 25], salt]) for j, salt in enumerate(salts)]
        assert str(h("telemetry", [self.seal_key, self.windows, *blocks])) == said["telemetry_root"]
        states = [window["state"] for window in given["windows"]]
        assert [state == "excluded" for state in states] == self.left_out()
        counts = {"windows": len(states), "observed": states.count("observed"), "excluded": states.count("excluded")}
        counts["idle"] = sum(word == 1 << 224 for word in made)
        assert all(said[name] == value for name, value in counts.items())
        for objective, found in zip(self.terms.objectives, self.results, strict=True):
            cells = [window["cells"][objective["id"]] for window in given["windows"]]
            good, bad = (sum(cell[name] for cell in cells) for name in ("good", "bad"))
            assert (found["good"], found["valid"], "undecided" in found) == (good, good + bad, False)
        rule = rule_of(self.terms)
        if rule is not None and not self.withheld:
            cells = [window["cells"][ids[rule.objective]] for window in given["windows"]]
            listed = [tuple(each[name] for name in LISTED) for each in said["trace"]["incidents"]]
            assert counted(self.terms, [(cell["good"], cell["bad"]) for cell in cells]) == listed
        self.verdict()


def require_key(proof: Any, name: str, chain_id: str) -> None:
    manifest = proof["manifest"]
    assert manifest["circuit_id"] == chain.circuit_id(proof["verification_key"]).hex()
    assert manifest["circuit"] == proof["circuit"] == name
    assert not manifest["dev_unsafe"] or chain_id in TEST_CHAINS


TIER_STEPS = (
    *("currency", "base", "tiers", "tiers_combine", "combined_bps", "tier_amount", "price_per_request"),
    *("rules_combine", "cap", "minimum", "rounding"),
)


def _chain_pin(root: Any, trust: Any) -> Any:
    """What a trust file says of the chain that a root is on, if it names it."""
    if trust is not None and trust["chain_id"] == root["chain_id"]:
        return {"registry": trust["registry"]}
    further = [] if trust is None else trust.get("root_chains", [])
    return next((each for each in further if each["chain_id"] == root["chain_id"]), None)


def _honoured(listed: Any) -> Span:
    return Span(int(listed["honoured"]["from_ns"]), int(listed["honoured"]["to_ns"]))


def _require_agreed(terms: Terms) -> None:
    for name, key in terms.parties.items():
        signature = bytes.fromhex(terms.doc["signatures"][name])
        assert log.signed(bytes.fromhex(key), b"sla-ledger/agreement/v1\n" + terms.bytes, signature)
