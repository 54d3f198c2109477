// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The two Merkle trees of this project, seen from a leaf
/// @notice Batches of statements hash sorted pairs with keccak256; the ledger is a tree by RFC 6962 with SHA-256.
library MerklePaths {
    /// @notice The root of a batch that a leaf and its siblings lead to.
    /// @dev A pair is hashed as keccak256(min || max), so a path needs no sides. It does not tell a leaf from an
    ///      inner node: statement leaves are hashes of 32 bytes and nodes of 64, so work the leaf out yourself.
    /// @param leaf the leaf of a statement
    /// @param siblings the nodes beside the way up, lowest first
    /// @return node the root
    function batchRoot(bytes32 leaf, bytes32[] calldata siblings) internal pure returns (bytes32 node) {
        node = leaf;
        for (uint256 i = 0; i < siblings.length; ++i) {
            bytes32 sibling = siblings[i];
            (bytes32 low, bytes32 high) = node < sibling ? (node, sibling) : (sibling, node);
            assembly ("memory-safe") {
                mstore(0x00, low)
                mstore(0x20, high)
                node := keccak256(0x00, 0x40)
            }
        }
    }

    /// @notice Whether an entry is in the ledger's tree of a size and root (RFC 9162, section 2.1.3.2).
    /// @dev SHA-256 is the precompile at address 2.
    /// @param entryHash sha256(0x00 || entry)
    /// @param index number of the entry, from 0
    /// @param size number of entries in the tree
    /// @param root root of the tree
    /// @param audit the audit path, lowest node first
    /// @return True if and only if the path has exactly the nodes it needs and leads to the root
    function isIncluded(bytes32 entryHash, uint64 index, uint64 size, bytes32 root, bytes32[] calldata audit)
        internal
        pure
        returns (bool)
    {
        if (index >= size) return false;
        uint64 place = index;
        uint64 last = size - 1;
        bytes32 node = entryHash;
        for (uint256 i = 0; i < audit.length; ++i) {
            if (last == 0) return false;
            if (place & 1 == 1 || place == last) {
                node = sha256(abi.encodePacked(bytes1(0x01), audit[i], node));
                // A last node without a sibling moves up as it is.
                while (place & 1 == 0 && place != 0) {
                    place >>= 1;
                    last >>= 1;
                }
            } else {
                node = sha256(abi.encodePacked(bytes1(0x01), node, audit[i]));
            }
            place >>= 1;
            last >>= 1;
        }
        return last == 0 && node == root;
    }
}
