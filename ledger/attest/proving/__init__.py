"""Making proofs: circuits, keys and their ceremony, and the processes that hold them."""
