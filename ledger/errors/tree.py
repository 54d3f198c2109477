"""The root of the tree, and the kinds of error that transports tell apart."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "AccessDenied",
    "BadInput",
    "EvidenceInvalid",
    "NotFound",
    "NotYet",
    "Refused",
    "SlaLedgerError",
    "Unauthenticated",
    "Unavailable",
]


class SlaLedgerError(Exception):
    """Root of the tree.

    ``code`` is stable across releases; ``exit_code`` is what the command line ends with;
    ``data`` holds the values that made the error, never secrets.
    """

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def as_dict(self) -> dict[str, Any]:
        """The error as plain values, for ``--json`` output and problem documents."""
        return {"code": self.code, "message": self.message, "data": self.data}


class BadInput(SlaLedgerError):
    """The caller's input cannot be used as a whole; nothing was written."""

    code = "bad_input"
    exit_code = 2


class Refused(SlaLedgerError):
    """The request is well formed but the present state does not allow it."""

    code = "refused"


class Unauthenticated(SlaLedgerError):
    """Nobody known asks: no credentials, or such as do not hold (unknown, expired, forged)."""

    code = "unauthenticated"


class AccessDenied(SlaLedgerError):
    """Somebody known asks for what their scopes do not cover; ``data`` names the scope."""

    code = "access_denied"


class NotFound(SlaLedgerError):
    """What was asked for does not exist."""

    code = "not_found"


class EvidenceInvalid(SlaLedgerError):
    """A signature, proof, key or path does not hold."""

    code = "evidence_invalid"


class Unavailable(SlaLedgerError):
    """Something this process depends on (prover, chain, disk) did not answer or failed."""

    code = "unavailable"


class NotYet(Unavailable):
    """What the work waits for has not happened; it is tried again after ``retry_after_s``, as often as it takes."""

    code = "not_yet"
