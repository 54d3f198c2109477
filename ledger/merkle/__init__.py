"""RFC 6962 Merkle trees and the C2SP formats around them. Standard library only, no input or output.

``hasher`` hashes, ``tile`` names stored tiles, ``tree`` grows tiles and reads roots from them, ``proof``
makes proofs, ``verify`` checks them, ``note`` and ``checkpoint`` are the signed texts that carry a root.
"""
