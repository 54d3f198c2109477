"""RFC 6962 Merkle trees and the C2SP formats around them. Standard library only, no input or output.

``hasher`` hashes, ``tile`` names stored tiles, ``tree`` grows tiles and reads roots from them, ``proof``
makes proofs, ``verify`` checks them, ``note`` and ``checkpoint`` are the signed texts that carry a root.
``subtree`` proves stretches of leaves, ``cosignature`` and ``witness`` are about others who watch the log,
``entry_bundle`` and ``tlog_proof`` are what third parties download.
"""
