// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IGroth16Verifier} from "./interfaces/IGroth16Verifier.sol";

/// @title Groth16 over BN254 for circuits with six public signals
/// @notice One bytecode for every key: the verification key is a constructor argument and lives in
///         immutables. Checks e(-A, B) e(alpha, beta) e(vk_x, gamma) e(C, delta) = 1, where
///         vk_x = IC_0 + sum signals_i IC_{i+1} (Groth, EUROCRYPT 2016), with the precompiles of EIP-196 and
///         EIP-197 at the prices of EIP-1108.
/// @dev The constructor refuses keys under which anyone can forge. Where delta = k gamma with a known k, the
///      proof A = alpha, B = beta, C = -vk_x / k holds for every statement; k = 1 and k = -1 (equal x) are
///      refused. A delta of plus or minus the G2 generator is a setup whose second phase never ran.
contract Groth16Verifier is IGroth16Verifier {
    /// @dev Base field of BN254: coordinates.
    uint256 private constant Q = 21888242871839275222246405745257275088696311157297823662689037894645226208583;
    /// @dev Scalar field of BN254: signals.
    uint256 private constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;
    /// @dev x of the G2 generator, c1 and c0.
    uint256 private constant G2_X1 = 11559732032986387107991004021392285783925812861821192530917403151452391805634;
    uint256 private constant G2_X0 = 10857046999023057135944570762232829481370756359578518086990519993285655852781;

    /// @dev EIP-1108 prices, given to each precompile and no more.
    uint256 private constant ADD_GAS = 150;
    uint256 private constant MUL_GAS = 6_000;
    uint256 private constant PAIRING_GAS = 45_000 + 4 * 34_000;
    /// @dev A call passes on at most 63/64 of the gas left (EIP-150); the margin is for reaching the call.
    uint256 private constant PAIRING_GAS_LEFT = (PAIRING_GAS * 64) / 63 + 1_000;

    uint256 private immutable ALPHA_X;
    uint256 private immutable ALPHA_Y;
    uint256 private immutable BETA_X1;
    uint256 private immutable BETA_X0;
    uint256 private immutable BETA_Y1;
    uint256 private immutable BETA_Y0;
    uint256 private immutable GAMMA_X1;
    uint256 private immutable GAMMA_X0;
    uint256 private immutable GAMMA_Y1;
    uint256 private immutable GAMMA_Y0;
    uint256 private immutable DELTA_X1;
    uint256 private immutable DELTA_X0;
    uint256 private immutable DELTA_Y1;
    uint256 private immutable DELTA_Y0;
    uint256 private immutable IC0_X;
    uint256 private immutable IC0_Y;
    uint256 private immutable IC1_X;
    uint256 private immutable IC1_Y;
    uint256 private immutable IC2_X;
    uint256 private immutable IC2_Y;
    uint256 private immutable IC3_X;
    uint256 private immutable IC3_Y;
    uint256 private immutable IC4_X;
    uint256 private immutable IC4_Y;
    uint256 private immutable IC5_X;
    uint256 private immutable IC5_Y;
    uint256 private immutable IC6_X;
    uint256 private immutable IC6_Y;

    /// @inheritdoc IGroth16Verifier
    bytes32 public immutable override circuitId;

    /// @notice A coordinate of the key is not below the base field.
    /// @param index position in the constructor's array
    error CoordinateOutOfField(uint256 index);
    /// @notice A G1 point of the key is the point at infinity or not on the curve.
    /// @param index position of its x in the constructor's array
    error PointNotOnG1(uint256 index);
    /// @notice beta, gamma or delta is the point at infinity or not in the group G2.
    error PointNotOnG2();
    /// @notice Under this key anyone can forge: delta is plus or minus gamma or the G2 generator.
    error ForgeableKey();
    /// @notice A public signal is not below the scalar field.
    /// @param index position of the signal
    error SignalOutOfField(uint256 index);
    /// @notice Too little gas was passed to come to an answer.
    error NotEnoughGas();

    /// @notice Checks the key and keeps it.
    /// @param key alpha(x, y), beta(x1, x0, y1, y0), gamma(..), delta(..), IC_0(x, y) .. IC_6(x, y)
    constructor(uint256[28] memory key) {
        _checkKey(key);
        ALPHA_X = key[0];
        ALPHA_Y = key[1];
        BETA_X1 = key[2];
        BETA_X0 = key[3];
        BETA_Y1 = key[4];
        BETA_Y0 = key[5];
        GAMMA_X1 = key[6];
        GAMMA_X0 = key[7];
        GAMMA_Y1 = key[8];
        GAMMA_Y0 = key[9];
        DELTA_X1 = key[10];
        DELTA_X0 = key[11];
        DELTA_Y1 = key[12];
        DELTA_Y0 = key[13];
        IC0_X = key[14];
        IC0_Y = key[15];
        IC1_X = key[16];
        IC1_Y = key[17];
        IC2_X = key[18];
        IC2_Y = key[19];
        IC3_X = key[20];
        IC3_Y = key[21];
        IC4_X = key[22];
        IC4_Y = key[23];
        IC5_X = key[24];
        IC5_Y = key[25];
        IC6_X = key[26];
        IC6_Y = key[27];
        circuitId = sha256(abi.encodePacked("sla-ledger/vk/v1", uint32(6), key));
    }

    /// @inheritdoc IGroth16Verifier
    function verifyProof(uint256[8] calldata proof, uint256[6] calldata signals)
        external
        view
        override
        returns (bool)
    {
        for (uint256 i = 0; i < 6; ++i) {
            if (signals[i] >= R) revert SignalOutOfField(i);
        }
        // The one coordinate that is changed before the precompile sees it; all others it refuses itself.
        if (proof[1] >= Q) return false;

        uint256[5] memory acc;
        acc[0] = IC0_X;
        acc[1] = IC0_Y;
        _addMul(acc, IC1_X, IC1_Y, signals[0]);
        _addMul(acc, IC2_X, IC2_Y, signals[1]);
        _addMul(acc, IC3_X, IC3_Y, signals[2]);
        _addMul(acc, IC4_X, IC4_Y, signals[3]);
        _addMul(acc, IC5_X, IC5_Y, signals[4]);
        _addMul(acc, IC6_X, IC6_Y, signals[5]);

        uint256[24] memory pairs;
        pairs[0] = proof[0];
        pairs[1] = proof[1] == 0 ? 0 : Q - proof[1];
        pairs[2] = proof[2];
        pairs[3] = proof[3];
        pairs[4] = proof[4];
        pairs[5] = proof[5];
        pairs[6] = ALPHA_X;
        pairs[7] = ALPHA_Y;
        pairs[8] = BETA_X1;
        pairs[9] = BETA_X0;
        pairs[10] = BETA_Y1;
        pairs[11] = BETA_Y0;
        pairs[12] = acc[0];
        pairs[13] = acc[1];
        pairs[14] = GAMMA_X1;
        pairs[15] = GAMMA_X0;
        pairs[16] = GAMMA_Y1;
        pairs[17] = GAMMA_Y0;
        pairs[18] = proof[6];
        pairs[19] = proof[7];
        pairs[20] = DELTA_X1;
        pairs[21] = DELTA_X0;
        pairs[22] = DELTA_Y1;
        pairs[23] = DELTA_Y0;

        // With this much left the precompile gets its whole price, so a failure is the proof's fault:
        // a coordinate outside the field, a point off its curve or B outside the subgroup.
        if (gasleft() < PAIRING_GAS_LEFT) revert NotEnoughGas();
        bool ok;
        assembly ("memory-safe") {
            ok := staticcall(PAIRING_GAS, 0x08, pairs, 0x300, pairs, 0x20)
        }
        return ok && pairs[0] == 1;
    }

    /// @dev acc[0..1] += scalar * (x, y). The point was checked at construction and sums stay on the curve,
    ///      so a precompile can fail here only for want of gas.
    function _addMul(uint256[5] memory acc, uint256 x, uint256 y, uint256 scalar) private view {
        acc[2] = x;
        acc[3] = y;
        acc[4] = scalar;
        bool ok;
        assembly ("memory-safe") {
            let product := add(acc, 0x40)
            ok := staticcall(MUL_GAS, 0x07, product, 0x60, product, 0x40)
            ok := and(ok, staticcall(ADD_GAS, 0x06, acc, 0x80, acc, 0x40))
        }
        if (!ok) revert NotEnoughGas();
    }

    function _checkKey(uint256[28] memory key) private view {
        for (uint256 i = 0; i < 28; ++i) {
            if (key[i] >= Q) revert CoordinateOutOfField(i);
        }
        _checkG1(key, 0);
        for (uint256 i = 14; i < 28; i += 2) {
            _checkG1(key, i);
        }
        _checkG2(key);
        bool deltaIsGamma = key[10] == key[6] && key[11] == key[7];
        bool deltaIsGenerator = key[10] == G2_X1 && key[11] == G2_X0;
        if (deltaIsGamma || deltaIsGenerator) revert ForgeableKey();
    }

    /// @dev y^2 = x^3 + 3; (0, 0), the encoding of infinity, is not on it. An IC at infinity would be a
    ///      signal that binds nothing.
    function _checkG1(uint256[28] memory key, uint256 i) private pure {
        uint256 x = key[i];
        uint256 y = key[i + 1];
        if (mulmod(y, y, Q) != addmod(mulmod(mulmod(x, x, Q), x, Q), 3, Q)) revert PointNotOnG1(i);
    }

    /// @dev The pairing precompile checks curve and subgroup of each G2 point (EIP-197), also next to the
    ///      G1 point at infinity, with which the product is one.
    function _checkG2(uint256[28] memory key) private view {
        uint256[18] memory pairs;
        for (uint256 p = 0; p < 3; ++p) {
            uint256 from = 2 + 4 * p;
            if (key[from] | key[from + 1] | key[from + 2] | key[from + 3] == 0) revert PointNotOnG2();
            for (uint256 k = 0; k < 4; ++k) {
                pairs[6 * p + 2 + k] = key[from + k];
            }
        }
        bool ok;
        assembly ("memory-safe") {
            ok := staticcall(gas(), 0x08, pairs, 0x240, pairs, 0x20)
        }
        if (!ok || pairs[0] != 1) revert PointNotOnG2();
    }
}
