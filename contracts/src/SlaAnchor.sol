// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {IGroth16Verifier} from "./interfaces/IGroth16Verifier.sol";

/// @title Registry of service level agreements and of their proved statements
/// @notice Holds which terms two parties agreed to, and records statements about periods whose Groth16 proof
///         it has checked itself. A recorded statement says: this result and this credit follow, by those
///         terms, from the telemetry counts that were sealed. It does not say that the counts are true.
/// @dev Not upgradeable. Times are nanoseconds since the Unix epoch unless they are named seconds.
///      A proof can be re-randomised by anyone, so a statement's identity is (slaId, period, version) and its
///      signals, never the proof.
contract SlaAnchor is AccessControl, EIP712 {
    /// @notice May add verifiers.
    bytes32 public constant REGISTRAR_ROLE = keccak256("REGISTRAR_ROLE");
    /// @notice EIP-712 type of what the customer signs.
    bytes32 public constant REGISTRATION_TYPEHASH = keccak256(
        "Registration(address issuer,address customer,bytes32 nonce,uint256 termsHash,uint32 termsVersion,uint64 effectiveFrom,uint64 firstStart,uint32 windowSeconds,bytes32[] circuitIds)"
    );
    /// @notice Gas given to a verifier's `verifyProof`; the rest of the transaction comes on top.
    uint256 public constant VERIFIER_GAS = 280_000;

    bytes32 private constant CTX_TAG = keccak256("sla-ledger/ctx/v1");
    bytes32 private constant LEAF_TAG = keccak256("sla-ledger/leaf/v1");
    /// @dev Scalar field of BN254.
    uint256 private constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;
    uint256 private constant NS_PER_SECOND = 1_000_000_000;
    /// @dev A call passes on at most 63/64 of the gas left (EIP-150); the margin is for reaching the call.
    uint256 private constant VERIFIER_GAS_LEFT = (VERIFIER_GAS * 64) / 63 + 3_000;

    /// @notice One version of an agreement's terms, as both parties agree to it.
    struct Registration {
        address issuer;
        address customer;
        bytes32 nonce;
        uint256 termsHash;
        uint32 termsVersion;
        uint64 effectiveFrom;
        uint64 firstStart;
        uint32 windowSeconds;
        bytes32[] circuitIds;
    }

    /// @notice A statement about one period with its proof.
    /// @dev prevCtx and prevSignalsHash name the statement that this one replaces; both are zero in version 1.
    ///      signals: summary, credit, ctx, telemetryRoot, termsHash, baseCommit.
    struct Statement {
        bytes32 slaId;
        uint64 start;
        uint64 end;
        uint32 termsVersion;
        uint32 statementVersion;
        uint256 prevCtx;
        bytes32 prevSignalsHash;
        bytes32 circuitId;
        uint256[6] signals;
        uint256[8] proof;
    }

    /// @notice The agreement: its parties and how far its periods are recorded.
    struct Sla {
        address issuer;
        uint64 nextStart;
        uint32 termsVersion;
        address customer;
        uint64 firstStart;
    }

    /// @notice One registered version of the terms.
    struct Terms {
        uint256 termsHash;
        uint64 effectiveFrom;
        uint32 windowSeconds;
    }

    /// @notice A verifier and the hash of its code when it was added.
    struct Verifier {
        address verifier;
        bytes32 codeHash;
    }

    mapping(bytes32 slaId => Sla) private _slas;
    mapping(bytes32 slaId => mapping(uint32 termsVersion => Terms)) private _terms;
    mapping(bytes32 slaId => mapping(uint32 termsVersion => mapping(bytes32 circuitId => bool))) private _circuits;
    mapping(bytes32 circuitId => Verifier) private _verifiers;
    mapping(bytes32 recordKey => bytes32) private _records;
    mapping(bytes32 slaId => mapping(uint64 start => uint32)) private _restatedTo;

    /// @notice A version of an agreement's terms was registered.
    event Registered(
        bytes32 indexed slaId,
        address indexed issuer,
        address indexed customer,
        uint32 termsVersion,
        uint256 termsHash,
        uint64 effectiveFrom,
        uint64 firstStart,
        uint32 windowSeconds,
        bytes32[] circuitIds
    );
    /// @notice A verifier was added for a circuit.
    event VerifierAdded(bytes32 indexed circuitId, address indexed verifier, bytes32 codeHash);
    /// @notice A statement was proved and recorded.
    event StatementRecorded(
        bytes32 indexed slaId,
        uint256 indexed ctx,
        bytes32 indexed leaf,
        uint64 start,
        uint64 end,
        uint32 termsVersion,
        uint32 statementVersion,
        bytes32 circuitId,
        bytes32 signalsHash,
        bytes32 proofHash,
        address verifier
    );

    /// @notice Only the issuer registers; `issuer` must be the sender.
    error NotIssuer(address issuer, address sender);
    /// @notice Only issuer or customer records.
    error NotParty(bytes32 slaId, address sender);
    /// @notice A party is missing, or issuer and customer are the same.
    error InvalidParties(address issuer, address customer);
    /// @notice The signature over the registration is not the customer's.
    error CustomerSignatureInvalid(address customer, address recovered);
    /// @notice Versions of the terms start at 1 and have no gaps.
    error TermsVersionNotNext(uint32 expected, uint32 given);
    /// @notice termsHash is zero or not below the scalar field, or a window has no length.
    error InvalidTerms();
    /// @notice Version 1 must be in force at the first period's start.
    error FirstTermsTooLate(uint64 firstStart, uint64 effectiveFrom);
    /// @notice An amendment takes effect later than its block and than the version before it.
    error AmendmentNotInFuture(uint256 notBefore, uint64 effectiveFrom);
    /// @notice The start of the first period cannot be amended.
    error FirstStartChanged(uint64 registered, uint64 given);
    /// @notice No agreement is registered under this id.
    error UnknownSla(bytes32 slaId);
    /// @notice The address added as a verifier has no code.
    error NotAContract(address verifier);
    /// @notice Verifiers are add-only: this circuit has one.
    error VerifierExists(bytes32 circuitId, address verifier);
    /// @notice No verifier was added for this circuit.
    error UnknownCircuit(bytes32 circuitId);
    /// @notice The terms do not accept proofs of this circuit.
    error CircuitNotAccepted(bytes32 slaId, uint32 termsVersion, bytes32 circuitId);
    /// @notice A public signal is not below the scalar field.
    error SignalOutOfField(uint256 index);
    /// @notice The proof was made for another chain, registry, agreement, period or version.
    error CtxMismatch(uint256 expected, uint256 given);
    /// @notice The proof was made under other terms.
    error TermsHashMismatch(uint256 registered, uint256 given);
    /// @notice This version of the terms was not in force at the period's start.
    error TermsNotInForce(uint32 termsVersion, uint64 start);
    /// @notice The period is empty, no whole number of windows, or not as many as the proof says.
    error PeriodLengthInvalid(uint64 start, uint64 end, uint256 windowsInProof);
    /// @notice The period has not ended.
    error PeriodNotOver(uint64 end, uint256 nowNs);
    /// @notice A new period starts where the one before it ended.
    error PeriodNotContiguous(uint64 expectedStart, uint64 start);
    /// @notice Versions of a statement start at 1 and have no gaps.
    error StatementVersionNotNext(uint32 expected, uint32 given);
    /// @notice The statement to be replaced is not the recorded one of this period; version 1 replaces nothing.
    error PreviousStatementUnknown(uint256 prevCtx, bytes32 prevSignalsHash);
    /// @notice The verifier refuses the proof.
    error ProofInvalid(bytes32 circuitId);
    /// @notice The transaction's gas limit is too low for the verification.
    error NotEnoughGas(uint256 needed, uint256 left);

    /// @param admin may grant and revoke roles
    /// @param registrar may add verifiers
    constructor(address admin, address registrar) EIP712("SlaAnchor", "1") {
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        _grantRole(REGISTRAR_ROLE, registrar);
    }

    // --- verifiers ---------------------------------------------------------------------------

    /// @notice Adds a verifier under the circuit id that it states. Nothing removes or replaces it.
    function addVerifier(address verifier) external onlyRole(REGISTRAR_ROLE) {
        if (verifier.code.length == 0) revert NotAContract(verifier);
        bytes32 circuitId = IGroth16Verifier(verifier).circuitId();
        address present = _verifiers[circuitId].verifier;
        if (present != address(0)) revert VerifierExists(circuitId, present);
        bytes32 codeHash = verifier.codehash;
        _verifiers[circuitId] = Verifier(verifier, codeHash);
        emit VerifierAdded(circuitId, verifier, codeHash);
    }

    // --- registration ------------------------------------------------------------------------

    /// @notice Registers the first or the next version of an agreement's terms.
    /// @dev The first version may lie in the past. A later one takes effect only after its block, so that no
    ///      amendment reaches a period that has begun.
    /// @param reg the terms; the sender is the issuer
    /// @param customerSignature 65 bytes, the customer's EIP-712 signature over `reg`
    function register(Registration calldata reg, bytes calldata customerSignature) external {
        if (msg.sender != reg.issuer) revert NotIssuer(reg.issuer, msg.sender);
        if (reg.customer == address(0) || reg.customer == reg.issuer) {
            revert InvalidParties(reg.issuer, reg.customer);
        }
        if (reg.termsHash == 0 || reg.termsHash >= R || reg.windowSeconds == 0) revert InvalidTerms();
        _requireCustomer(reg, customerSignature);

        bytes32 slaId = slaIdOf(reg.issuer, reg.customer, reg.nonce);
        Sla storage sla = _slas[slaId];
        uint32 expected = sla.termsVersion + 1;
        if (reg.termsVersion != expected) revert TermsVersionNotNext(expected, reg.termsVersion);
        if (expected == 1) {
            if (reg.effectiveFrom > reg.firstStart) revert FirstTermsTooLate(reg.firstStart, reg.effectiveFrom);
            sla.issuer = reg.issuer;
            sla.customer = reg.customer;
            sla.firstStart = reg.firstStart;
            sla.nextStart = reg.firstStart;
        } else {
            if (reg.firstStart != sla.firstStart) revert FirstStartChanged(sla.firstStart, reg.firstStart);
            uint256 notBefore = block.timestamp * NS_PER_SECOND;
            uint64 previous = _terms[slaId][expected - 1].effectiveFrom;
            if (previous > notBefore) notBefore = previous;
            if (reg.effectiveFrom <= notBefore) revert AmendmentNotInFuture(notBefore, reg.effectiveFrom);
        }
        sla.termsVersion = expected;
        _terms[slaId][expected] = Terms(reg.termsHash, reg.effectiveFrom, reg.windowSeconds);
        for (uint256 i = 0; i < reg.circuitIds.length; ++i) {
            _circuits[slaId][expected][reg.circuitIds[i]] = true;
        }
        _emitRegistered(slaId, reg);
    }

    // --- statements --------------------------------------------------------------------------

    /// @notice Checks a statement and its proof and records it.
    /// @dev The periods of an agreement are contiguous from its first start, so of (start, end) and
    ///      (start, end + 1) only one can be recorded. A restatement is the version after the last one of
    ///      the same period and names what it replaces.
    /// @return recorded false if the same signals stand recorded already: then nothing changes
    function verifyAndRecord(Statement calldata s) external returns (bool recorded) {
        Sla storage sla = _slas[s.slaId];
        if (sla.termsVersion == 0) revert UnknownSla(s.slaId);
        if (msg.sender != sla.issuer && msg.sender != sla.customer) revert NotParty(s.slaId, msg.sender);

        for (uint256 i = 0; i < 6; ++i) {
            if (s.signals[i] >= R) revert SignalOutOfField(i);
        }
        uint256 ctx = ctxOf(s.slaId, s.start, s.end, s.termsVersion, s.statementVersion, s.prevCtx);
        if (s.signals[2] != ctx) revert CtxMismatch(ctx, s.signals[2]);

        bytes32 signalsHash = keccak256(abi.encode(s.signals));
        bytes32 key = _recordKey(s.slaId, s.start, s.end, s.statementVersion, ctx, signalsHash);
        if (_records[key] != bytes32(0)) return false;

        _requireTerms(s, sla.termsVersion);
        _advance(s, sla);
        address verifier = _requireProof(s);

        bytes32 proofHash = keccak256(abi.encodePacked(s.proof));
        _records[key] = keccak256(abi.encode(s.slaId, proofHash, verifier));
        _emitRecorded(s, signalsHash, proofHash, verifier);
        return true;
    }

    // --- views -------------------------------------------------------------------------------

    /// @notice The agreement's parties and progress; all zero where none is registered.
    function slaOf(bytes32 slaId) external view returns (Sla memory) {
        return _slas[slaId];
    }

    /// @notice One version of the terms; all zero where there is none.
    function termsOf(bytes32 slaId, uint32 termsVersion) external view returns (Terms memory) {
        return _terms[slaId][termsVersion];
    }

    /// @notice Whether a version of the terms accepts proofs of a circuit.
    function acceptsCircuit(bytes32 slaId, uint32 termsVersion, bytes32 circuitId) external view returns (bool) {
        return _circuits[slaId][termsVersion][circuitId];
    }

    /// @notice The verifier of a circuit; zero where none was added.
    function verifierOf(bytes32 circuitId) external view returns (Verifier memory) {
        return _verifiers[circuitId];
    }

    /// @notice The last version of a period that was restated, 0 where it has at most version 1.
    function restatedTo(bytes32 slaId, uint64 start) external view returns (uint32) {
        return _restatedTo[slaId][start];
    }

    /// @notice The one slot of a recorded statement: keccak256(abi.encode(slaId, proofHash, verifier)), or zero.
    function recordOf(
        bytes32 slaId,
        uint64 start,
        uint64 end,
        uint32 statementVersion,
        uint256 ctx,
        bytes32 signalsHash
    ) external view returns (bytes32) {
        return _records[_recordKey(slaId, start, end, statementVersion, ctx, signalsHash)];
    }

    /// @notice The EIP-712 digest that the customer signs.
    function registrationDigest(Registration calldata reg) public view returns (bytes32) {
        return _hashTypedDataV4(
            keccak256(
                abi.encode(
                    REGISTRATION_TYPEHASH,
                    reg.issuer,
                    reg.customer,
                    reg.nonce,
                    reg.termsHash,
                    reg.termsVersion,
                    reg.effectiveFrom,
                    reg.firstStart,
                    reg.windowSeconds,
                    keccak256(abi.encodePacked(reg.circuitIds))
                )
            )
        );
    }

    /// @notice The context signal: binds a proof to this chain and registry and to one version of one period.
    function ctxOf(
        bytes32 slaId,
        uint64 start,
        uint64 end,
        uint32 termsVersion,
        uint32 statementVersion,
        uint256 prevCtx
    ) public view returns (uint256) {
        bytes32 digest = keccak256(
            abi.encode(
                CTX_TAG, block.chainid, address(this), slaId, start, end, termsVersion, statementVersion, prevCtx
            )
        );
        return uint256(digest) >> 8;
    }

    /// @notice The id of an agreement.
    function slaIdOf(address issuer, address customer, bytes32 nonce) public pure returns (bytes32) {
        return keccak256(abi.encode(issuer, customer, nonce));
    }

    // --- rules -------------------------------------------------------------------------------

    function _requireCustomer(Registration calldata reg, bytes calldata signature) private view {
        (address recovered, ECDSA.RecoverError error_,) = ECDSA.tryRecover(registrationDigest(reg), signature);
        if (error_ != ECDSA.RecoverError.NoError || recovered != reg.customer) {
            revert CustomerSignatureInvalid(reg.customer, recovered);
        }
    }

    /// @dev The version named is the one in force at the period's start, the proof is about its terms, and the
    ///      period is over and has as many windows as the proof says.
    function _requireTerms(Statement calldata s, uint32 latestVersion) private view {
        Terms storage t = _terms[s.slaId][s.termsVersion];
        uint32 v = s.termsVersion;
        bool inForce = v != 0 && v <= latestVersion && t.effectiveFrom <= s.start
            && (v == latestVersion || _terms[s.slaId][v + 1].effectiveFrom > s.start);
        if (!inForce) revert TermsNotInForce(v, s.start);
        if (s.signals[4] != t.termsHash) revert TermsHashMismatch(t.termsHash, s.signals[4]);

        uint256 windows = (s.signals[0] >> 8) & 0x3ff;
        uint256 windowNs = uint256(t.windowSeconds) * NS_PER_SECOND;
        if (windows == 0 || uint256(s.start) + windows * windowNs != s.end) {
            revert PeriodLengthInvalid(s.start, s.end, windows);
        }
        uint256 nowNs = block.timestamp * NS_PER_SECOND;
        if (s.end > nowNs) revert PeriodNotOver(s.end, nowNs);
    }

    /// @dev Version 1 moves the agreement's frontier; a later version must replace the last one of its period.
    ///      Only a restated period spends a slot on its version.
    function _advance(Statement calldata s, Sla storage sla) private {
        uint32 version = s.statementVersion;
        if (version == 1) {
            if (s.start != sla.nextStart) revert PeriodNotContiguous(sla.nextStart, s.start);
            if (s.prevCtx != 0 || s.prevSignalsHash != bytes32(0)) {
                revert PreviousStatementUnknown(s.prevCtx, s.prevSignalsHash);
            }
            sla.nextStart = s.end;
            return;
        }
        uint32 last = _restatedTo[s.slaId][s.start];
        uint32 expected = s.start >= sla.nextStart ? 1 : last == 0 ? 2 : last + 1;
        if (version != expected) revert StatementVersionNotNext(expected, version);
        bytes32 replaced = _recordKey(s.slaId, s.start, s.end, version - 1, s.prevCtx, s.prevSignalsHash);
        if (_records[replaced] == bytes32(0)) revert PreviousStatementUnknown(s.prevCtx, s.prevSignalsHash);
        _restatedTo[s.slaId][s.start] = version;
    }

    /// @dev The only place that calls a verifier: with explicit gas, and any answer but true reverts.
    function _requireProof(Statement calldata s) private view returns (address verifier) {
        bytes32 circuitId = s.circuitId;
        if (!_circuits[s.slaId][s.termsVersion][circuitId]) {
            revert CircuitNotAccepted(s.slaId, s.termsVersion, circuitId);
        }
        verifier = _verifiers[circuitId].verifier;
        if (verifier == address(0)) revert UnknownCircuit(circuitId);
        if (gasleft() < VERIFIER_GAS_LEFT) revert NotEnoughGas(VERIFIER_GAS_LEFT, gasleft());
        if (!IGroth16Verifier(verifier).verifyProof{gas: VERIFIER_GAS}(s.proof, s.signals)) {
            revert ProofInvalid(circuitId);
        }
    }

    function _emitRegistered(bytes32 slaId, Registration calldata reg) private {
        emit Registered(
            slaId,
            reg.issuer,
            reg.customer,
            reg.termsVersion,
            reg.termsHash,
            reg.effectiveFrom,
            reg.firstStart,
            reg.windowSeconds,
            reg.circuitIds
        );
    }

    /// @dev The leaf is hashed twice so that it can never pass for an inner node of a Merkle tree.
    function _emitRecorded(Statement calldata s, bytes32 signalsHash, bytes32 proofHash, address verifier) private {
        bytes32 inner =
            keccak256(abi.encode(LEAF_TAG, bytes32(s.signals[2]), signalsHash, proofHash, s.circuitId));
        emit StatementRecorded(
            s.slaId,
            s.signals[2],
            keccak256(abi.encode(inner)),
            s.start,
            s.end,
            s.termsVersion,
            s.statementVersion,
            s.circuitId,
            signalsHash,
            proofHash,
            verifier
        );
    }

    function _recordKey(
        bytes32 slaId,
        uint64 start,
        uint64 end,
        uint32 statementVersion,
        uint256 ctx,
        bytes32 signalsHash
    ) private pure returns (bytes32) {
        return keccak256(abi.encode(slaId, start, end, statementVersion, ctx, signalsHash));
    }
}
