"""What goes wrong between here and a chain, in words that say what is stored and what happens next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from web3.exceptions import Web3RPCError

from ledger.app.ports.chain import StoredTransaction
from ledger.errors import ChainUnavailable

RETRY_AFTER_S: Final = 5


@contextmanager
def talking(purpose: str, *, sender: str, tx_hash: str | None = None) -> Iterator[None]:
    """Turn what goes wrong between here and the node into ChainUnavailable."""
    try:
        yield
    except OSError as error:
        # The text of such an error may quote the node's URL, and so may a traceback with its cause.
        said = f"the chain does not answer ({type(error).__name__})"
    except Web3RPCError as error:
        # No refusal by a contract: a sender without money, a node that is not ready.
        said = f"the node refuses: {error}"
    else:
        return
    rest = "could not" if tx_hash is None else "its bytes are stored and will be sent again; so far it could not"
    raise ChainUnavailable(
        f"{said}; {rest} {purpose} as {sender}",
        purpose=purpose,
        sender=sender,
        tx_hash=tx_hash,
        retry_after_s=RETRY_AFTER_S,
    )


def not_included(purpose: str, tx_hash: str, said: Exception | None) -> ChainUnavailable:
    """The error for a transaction that no block held in time; ``said`` is what the node has against it."""
    reason = "" if said is None else f" (the node says: {said})"
    return ChainUnavailable(
        f"the transaction to {purpose} was not included yet{reason}; it is stored and will be sent again",
        purpose=purpose,
        tx_hash=tx_hash,
        retry_after_s=RETRY_AFTER_S,
    )


def nonce_always_taken(purpose: str, sender: str) -> ChainUnavailable:
    """The error for a call whose nonce was another process's each time that it was signed."""
    return ChainUnavailable(
        f"other processes stored transactions of {sender} each time that the one to {purpose} was signed; nothing of "
        "it is stored, and it is tried again. If that goes on, the signer is too slow for so many workers",
        purpose=purpose,
        sender=sender,
        retry_after_s=RETRY_AFTER_S,
    )


def superseded_error(transaction: StoredTransaction) -> ChainUnavailable:
    """The error for a transaction whose nonce is gone."""
    return ChainUnavailable(
        f"another transaction of {transaction.sender} has nonce {transaction.nonce}, so the one to "
        f"{transaction.purpose} can never be included; a new one is signed. Use this key for nothing else",
        purpose=transaction.purpose,
        tx_hash=transaction.tx_hash,
        retry_after_s=RETRY_AFTER_S,
    )
