"""What a transaction offers for its place in a block, and what another must offer to take its place.

Reference: EIP-1559. Nodes take a transaction of a nonce that they hold already only if both its fees are higher by a
tenth (go-ethereum's ``txpool.pricebump``); an eighth leaves room for those that ask for more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from eth_account.typed_transactions.typed_transaction import TypedTransaction
from hexbytes import HexBytes

from ledger.errors import ChainUnavailable

GWEI: Final = 10**9
_TIP_WEI: Final = GWEI
_RAISE: Final = (9, 8)
_RETRY_AFTER_S: Final = 30


@dataclass(frozen=True, slots=True)
class Fees:
    """Wei for a unit of gas: ``most`` in all, and what the maker of the block gets of it."""

    most: int
    tip: int


@dataclass(frozen=True, slots=True)
class FeePolicy:
    """``limit_wei`` for a unit of gas is never exceeded; a transaction may miss ``replace_after_blocks`` blocks."""

    limit_wei: int = 500 * GWEI
    replace_after_blocks: int = 12

    def first(self, base_fee: int) -> Fees:
        """What a new transaction offers where the newest block took ``base_fee`` wei.

        Raises ChainUnavailable where the limit does not reach the fee of the next block.
        """
        tip = min(_TIP_WEI, self.limit_wei)
        if base_fee + tip > self.limit_wei:
            raise self._above(base_fee + tip, "the chain takes")
        # Twice the base fee lasts for six full blocks of the steepest rise.
        return Fees(min(2 * base_fee + tip, self.limit_wei), tip)

    def raised(self, before: Fees, base_fee: int) -> Fees:
        """What takes the place of a transaction that offers ``before``. Raises ChainUnavailable above the limit."""
        least = Fees(_raised(before.most), _raised(before.tip))
        if least.most > self.limit_wei:
            stuck = f"a transaction that offers {_gwei(before.most)} gwei is stuck, and the next one would offer"
            raise self._above(least.most, stuck)
        if base_fee + least.tip > self.limit_wei:
            raise self._above(base_fee + least.tip, "the chain takes")
        return Fees(min(max(least.most, 2 * base_fee + least.tip), self.limit_wei), least.tip)

    def _above(self, needed: int, what: str) -> ChainUnavailable:
        return ChainUnavailable(
            f"{what} {_gwei(needed)} gwei for a unit of gas, more than SLA_LEDGER_MAX_FEE_GWEI allows "
            f"({_gwei(self.limit_wei)}); wait until fees fall, or raise that setting and start again",
            needed_wei=str(needed),
            limit_wei=str(self.limit_wei),
            retry_after_s=_RETRY_AFTER_S,
        )


def fields_of(raw: bytes) -> dict[str, Any]:
    """The fields that were signed as EIP-1559 transaction ``raw``, without its signature."""
    fields: dict[str, Any] = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    unsigned = {name: value for name, value in fields.items() if name not in {"v", "r", "s"}}
    if not unsigned["to"]:
        del unsigned["to"]
    return unsigned


def _raised(wei: int) -> int:
    times, by = _RAISE
    return -(-wei * times // by)


def _gwei(wei: int) -> str:
    whole, rest = divmod(wei, GWEI)
    return str(whole) if not rest else f"{whole}.{rest:09}".rstrip("0")
