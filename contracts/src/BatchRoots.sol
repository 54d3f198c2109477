// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerklePaths} from "./MerklePaths.sol";

/// @title Roots of batches of statements, each bound to a checkpoint of the issuer's ledger
/// @notice One slot publishes any number of statements. It says that the sender published them no later than
///         its block, beside this state of its ledger. It does not say that a proof was checked, nor that the
///         statements are true.
/// @dev Everything is keyed by the sender, so nobody can publish, or use up checkpoint sizes, in another's name.
abstract contract BatchRoots {
    bytes32 private constant BATCH_TAG = keccak256("sla-ledger/batch/v1");

    /// @notice A state of a ledger.
    /// @param logId keccak256 of the log's origin
    /// @param size number of entries
    /// @param root root by RFC 6962 of that many entries
    struct Checkpoint {
        bytes32 logId;
        uint64 size;
        bytes32 root;
    }

    /// @notice The way from a statement's leaf to what its issuer anchored.
    /// @param checkpoint the ledger checkpoint that was anchored with the batch
    /// @param siblings the nodes beside the way up in the batch, lowest first
    struct BatchPath {
        Checkpoint checkpoint;
        bytes32[] siblings;
    }

    /// @notice The way from an entry of the ledger to what its issuer anchored.
    /// @param checkpoint the ledger checkpoint that was anchored
    /// @param batchRoot the root of the batch that was anchored with it; zero where there was none
    /// @param index number of the entry, from 0
    /// @param audit the audit path of RFC 6962, lowest node first
    struct EntryPath {
        Checkpoint checkpoint;
        bytes32 batchRoot;
        uint64 index;
        bytes32[] audit;
    }

    /// @dev The latest checkpoint of a log in one slot. 192 bits of the root tell two roots of one size apart; the
    ///      whole root is bound by the anchored node and stands in the event.
    struct Head {
        uint64 size;
        bytes24 rootPrefix;
    }

    mapping(address sender => mapping(bytes32 node => uint64 seconds_)) private _anchoredAt;
    mapping(address sender => mapping(bytes32 logId => Head)) private _heads;

    /// @notice A batch was published.
    /// @param issuer the sender
    /// @param logId keccak256 of the log's origin
    /// @param batchRoot root over the statements' leaves; zero anchors the checkpoint alone
    /// @param node what is anchored: the batch root hashed with the checkpoint
    /// @param size size of the ledger checkpoint
    /// @param root root of the ledger checkpoint
    event BatchAnchored(
        address indexed issuer,
        bytes32 indexed logId,
        bytes32 indexed batchRoot,
        bytes32 node,
        uint64 size,
        bytes32 root
    );

    /// @notice An empty ledger says nothing: neither size nor root of a checkpoint is zero.
    error CheckpointEmpty();
    /// @notice The sender has anchored a larger checkpoint of this log.
    /// @param logId keccak256 of the log's origin
    /// @param anchored the size of its latest checkpoint
    /// @param given the size of this one
    error CheckpointOlder(bytes32 logId, uint64 anchored, uint64 given);
    /// @notice The sender has anchored this size of this log with another root: the log is forked.
    /// @param logId keccak256 of the log's origin
    /// @param size the size
    /// @param anchoredPrefix the first 24 bytes of the root that was anchored
    /// @param given the other root
    error CheckpointForked(bytes32 logId, uint64 size, bytes24 anchoredPrefix, bytes32 given);

    /// @notice Whether a statement's leaf was published by `issuer`. Published, not verified: no proof was checked.
    /// @dev Any node of a batch passes for a leaf here, so work the leaf out from the statement (`leafOf`).
    /// @param issuer who anchored the batch
    /// @param leaf the statement's leaf
    /// @param path the way to what was anchored
    /// @return True if and only if the path leads to a node that `issuer` has anchored
    function isRootAnchored(address issuer, bytes32 leaf, BatchPath calldata path) external view returns (bool) {
        bytes32 root = MerklePaths.batchRoot(leaf, path.siblings);
        return root != bytes32(0) && _anchoredAt[issuer][batchNodeOf(path.checkpoint, root)] != 0;
    }

    /// @notice Whether an entry of the ledger stands under a checkpoint that `issuer` anchored.
    /// @param issuer who anchored the checkpoint
    /// @param entryHash sha256(0x00 || entry)
    /// @param path the way to what was anchored
    /// @return True if and only if the entry is in that checkpoint and `issuer` has anchored it
    function isEntryAnchored(address issuer, bytes32 entryHash, EntryPath calldata path) external view returns (bool) {
        if (_anchoredAt[issuer][batchNodeOf(path.checkpoint, path.batchRoot)] == 0) return false;
        return MerklePaths.isIncluded(entryHash, path.index, path.checkpoint.size, path.checkpoint.root, path.audit);
    }

    /// @notice When `issuer` anchored a node, in seconds since the Unix epoch; zero if it never did.
    /// @param issuer who anchored it
    /// @param node the node, as `batchNodeOf` gives it
    /// @return The time of the block
    function anchoredAt(address issuer, bytes32 node) external view returns (uint64) {
        return _anchoredAt[issuer][node];
    }

    /// @notice The largest checkpoint of a log that `issuer` anchored; zeros if there is none.
    /// @param issuer who anchored it
    /// @param logId keccak256 of the log's origin
    /// @return size number of entries
    /// @return rootPrefix the first 24 bytes of its root
    function latestCheckpoint(address issuer, bytes32 logId) external view returns (uint64 size, bytes24 rootPrefix) {
        Head storage head = _heads[issuer][logId];
        return (head.size, head.rootPrefix);
    }

    /// @notice What is anchored of a batch: its root bound to a checkpoint of the ledger. The same on every chain.
    /// @param checkpoint the ledger checkpoint
    /// @param batchRoot root over the statements' leaves; zero anchors the checkpoint alone
    /// @return The node
    function batchNodeOf(Checkpoint calldata checkpoint, bytes32 batchRoot) public pure returns (bytes32) {
        return keccak256(abi.encode(BATCH_TAG, checkpoint.logId, checkpoint.size, checkpoint.root, batchRoot));
    }

    /// @notice Anchors a batch in the sender's name.
    /// @dev What was anchored before changes nothing, whatever was anchored since. Sizes of one log never fall.
    /// @param checkpoint the ledger checkpoint
    /// @param batchRoot root over the statements' leaves; zero anchors the checkpoint alone
    /// @return True unless the sender had anchored exactly this before
    function _anchorBatch(Checkpoint calldata checkpoint, bytes32 batchRoot) internal returns (bool) {
        (bytes32 logId, uint64 size, bytes32 root) = (checkpoint.logId, checkpoint.size, checkpoint.root);
        if (size == 0 || root == bytes32(0)) revert CheckpointEmpty();
        bytes32 node = batchNodeOf(checkpoint, batchRoot);
        if (_anchoredAt[msg.sender][node] != 0) return false;

        Head storage slot = _heads[msg.sender][logId];
        Head memory head = slot;
        if (size < head.size) revert CheckpointOlder(logId, head.size, size);
        if (size > head.size) {
            (slot.size, slot.rootPrefix) = (size, bytes24(root));
        } else if (bytes24(root) != head.rootPrefix) {
            revert CheckpointForked(logId, size, head.rootPrefix, root);
        }
        _anchoredAt[msg.sender][node] = uint64(block.timestamp);
        emit BatchAnchored(msg.sender, logId, batchRoot, node, size, root);
        return true;
    }
}
