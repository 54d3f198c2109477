"""The closing sentence of a report says by what a bundle is consistent, and on what that rests."""

from __future__ import annotations

from ledger.attest.checks.report import DEV_KEY, Line, OnChain, Outcome, Report, Stands

RECORDED = OnChain(Stands.RECORDED, "31337", 12)
ROOT = OnChain(Stands.ROOT, "8453", 99)


def verdict(*on_chain: OnChain, accept_dev: bool = True, **outcomes: Outcome) -> str:
    lines = [Line(name.replace("_", " "), outcome, "") for name, outcome in outcomes.items()]
    return Report((*lines, Line(DEV_KEY, Outcome.ASSUMED, "")), (), True, on_chain).verdict(accept_dev=accept_dev)


def test_where_no_node_was_asked_it_is_said_of_the_file_alone() -> None:
    assert verdict(proof=Outcome.PASS) == "consistent offline, against your pins"
    assert verdict(accept_dev=False) == "consistent offline, but resting on dev key"


def test_what_nodes_showed_is_named_with_chain_and_block() -> None:
    shown = "consistent offline and on chain, as shown by the node asked (recorded in block 12 of chain 31337)"
    assert verdict(RECORDED) == f"{shown}, against your pins"
    assert verdict(RECORDED, accept_dev=False) == f"{shown}, but resting on dev key"
    two = "the nodes asked (recorded in block 12 of chain 31337, batch root in block 99 of chain 8453)"
    assert verdict(RECORDED, ROOT) == f"consistent offline and on chain, as shown by {two}, against your pins"


def test_one_node_shows_both_on_its_chain() -> None:
    root = OnChain(Stands.ROOT, "31337", 9)
    two = "the node asked (recorded in block 12 of chain 31337, batch root in block 9 of chain 31337)"
    assert two in verdict(RECORDED, root)


def test_what_fails_is_named_whatever_a_node_showed() -> None:
    assert verdict(RECORDED, proof=Outcome.FAIL, period=Outcome.FAIL) == "does not hold: proof, period"
