"""The range checks that every number of an attestation passes.

Proof systems work modulo ``SCALAR_ORDER``; a value and the same value plus the modulus are one
field element but two texts. All checks here therefore refuse instead of reducing.
"""

from __future__ import annotations

from ledger.domain.attested import SCALAR_ORDER
from ledger.errors import AttestationValueInvalid


def require_element(value: int, name: str) -> int:
    """``value`` if it is a canonical scalar field element: an int, not a bool, in [0, r).

    Raises AttestationValueInvalid naming ``name``.
    """
    if type(value) is not int or not 0 <= value < SCALAR_ORDER:
        raise AttestationValueInvalid(
            f"{name} must be an integer from 0 to r-1 (the BN254 scalar field); values are not reduced",
            field=name,
        )
    return value


def require_uint(value: int, bits: int, name: str) -> int:
    """``value`` if it is an int in [0, 2**bits). Raises AttestationValueInvalid naming ``name``."""
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise AttestationValueInvalid(f"{name} must be an integer from 0 to 2^{bits}-1", field=name, bits=bits)
    return value


def require_at_most(value: int, maximum: int, name: str) -> int:
    """``value`` if it is an int in [0, maximum]. Raises AttestationValueInvalid naming ``name``."""
    if type(value) is not int or not 0 <= value <= maximum:
        raise AttestationValueInvalid(f"{name} must be an integer from 0 to {maximum}", field=name, maximum=maximum)
    return value


def require_bytes(value: bytes, length: int, name: str) -> bytes:
    """``value`` if it is bytes of exactly ``length``. Raises AttestationValueInvalid naming ``name``."""
    if type(value) is not bytes or len(value) != length:
        raise AttestationValueInvalid(f"{name} must be exactly {length} bytes", field=name, length=length)
    return value
