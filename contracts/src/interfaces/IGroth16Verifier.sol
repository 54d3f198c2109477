// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A Groth16 verifier of one verification key with six public signals
/// @notice What `SlaAnchor` needs to know of a verifier. A verifier is immutable: its key is fixed at
///         construction and named by `circuitId`.
interface IGroth16Verifier {
    /// @notice sha256("sla-ledger/vk/v1" || uint32be 6 || alpha || beta || gamma || delta || IC_0 .. IC_6),
    ///         all coordinates 32 bytes big endian, G2 points as x1, x0, y1, y0.
    function circuitId() external view returns (bytes32);

    /// @notice Checks one proof.
    /// @param proof A.x, A.y, B.x1, B.x0, B.y1, B.y0, C.x, C.y
    /// @param signals in the order of the circuit (`ISlaAnchor`); each below the scalar field
    /// @return True if and only if the proof holds. Reverts on a signal outside the field and on too
    ///         little gas, so that `false` always means "this proof is wrong".
    function verifyProof(uint256[8] calldata proof, uint256[6] calldata signals) external view returns (bool);
}
