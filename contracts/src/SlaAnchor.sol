// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {BatchRoots} from "./BatchRoots.sol";
import {IGroth16Verifier} from "./interfaces/IGroth16Verifier.sol";
import {ISlaAnchor} from "./interfaces/ISlaAnchor.sol";

/// @title Registry of service level agreements and of their proved statements
/// @notice Holds which terms two parties agreed to, publishes roots of batches of statements, and records
///         statements about periods whose Groth16 proof it has checked itself. A recorded statement says: this
///         result and this credit follow, by those terms, from the telemetry counts that were sealed. It does not
///         say that the counts are true.
/// @dev Not upgradeable. Times are nanoseconds since the Unix epoch unless they are named seconds. A pause holds up
///      new terms and batches; recording, which is how a party disputes, is never paused.
///      A proof can be re-randomised by anyone, so a statement's identity is (slaId, period, version) and its
///      signals, never the proof.
contract SlaAnchor is ISlaAnchor, AccessControl, EIP712, Pausable, BatchRoots {
    /// @notice May add and retire verifiers.
    bytes32 public constant REGISTRAR_ROLE = keccak256("REGISTRAR_ROLE");
    /// @notice May pause and resume registering and publishing.
    bytes32 public constant PAUSER_ROLE = keccak256("PAUSER_ROLE");
    /// @notice EIP-712 type of what the customer signs.
    bytes32 public constant REGISTRATION_TYPEHASH = keccak256(
        "Registration(address issuer,address customer,bytes32 nonce,uint256 termsHash,uint32 termsVersion,uint64 effectiveFrom,uint64 firstStart,uint32 windowSeconds,bytes32[] circuitIds)"
    );
    /// @notice Gas given to a verifier's `verifyProof`; the rest of the transaction comes on top.
    uint256 public constant VERIFIER_GAS = 280_000;

    bytes32 private constant CTX_TAG = keccak256("sla-ledger/ctx/v1");
    bytes32 private constant LEAF_TAG = keccak256("sla-ledger/leaf/v1");
    bytes32 private constant PAIR_TAG = keccak256("sla-ledger/circuit-pair/v1");
    /// @dev The lowest bit of a record, and all the others.
    bytes32 private constant REPLACED = bytes32(uint256(1));
    bytes32 private constant NOT_REPLACED = ~REPLACED;
    /// @dev Scalar field of BN254.
    uint256 private constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;
    uint256 private constant NS_PER_SECOND = 1_000_000_000;
    /// @dev A call passes on at most 63/64 of the gas left (EIP-150); the margin is for reaching the call.
    uint256 private constant VERIFIER_GAS_LEFT = (VERIFIER_GAS * 64) / 63 + 3_000;

    mapping(bytes32 slaId => Sla) private _slas;
    mapping(bytes32 slaId => mapping(uint32 termsVersion => Terms)) private _terms;
    mapping(bytes32 slaId => mapping(uint32 termsVersion => mapping(bytes32 circuitId => bool))) private _circuits;
    mapping(bytes32 circuitId => Verifier) private _verifiers;
    /// @dev The lowest bit is not the hash's: it says that a later version replaced the statement.
    mapping(bytes32 recordKey => bytes32) private _records;

    /// @notice Gives the roles to their first holders.
    /// @param admin may grant and revoke roles, pause and resume
    /// @param registrar may add and retire verifiers
    constructor(address admin, address registrar) EIP712("SlaAnchor", "1") {
        if (admin == address(0) || registrar == address(0)) revert RoleWithoutHolder();
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
        _grantRole(PAUSER_ROLE, admin);
        _grantRole(REGISTRAR_ROLE, registrar);
    }

    // --- verifiers ---------------------------------------------------------------------------

    /// @notice Adds a verifier under the circuit id that it states. Nothing replaces it.
    /// @param verifier a deployed `Groth16Verifier`; read its code before adding it, since nothing here can
    function addVerifier(address verifier) external onlyRole(REGISTRAR_ROLE) {
        if (verifier.code.length == 0) revert NotAContract(verifier);
        bytes32 circuitId = IGroth16Verifier(verifier).circuitId();
        address present = _verifiers[circuitId].verifier;
        if (present != address(0)) revert VerifierExists(circuitId, present);
        bytes32 codeHash = verifier.codehash;
        _verifiers[circuitId] = Verifier(verifier, 0, codeHash);
        emit VerifierAdded(circuitId, verifier, codeHash);
    }

    /// @notice Retires the verifier of a circuit for good, for one whose key or circuit has turned out unsound.
    /// @dev At once and for every period: under such a circuit a false statement passes as easily as a true one.
    ///      What is recorded stays recorded.
    /// @param circuitId the circuit
    function retireVerifier(bytes32 circuitId) external onlyRole(REGISTRAR_ROLE) {
        Verifier storage v = _verifiers[circuitId];
        if (v.verifier == address(0)) revert UnknownCircuit(circuitId);
        if (v.retiredAt != 0) revert CircuitRetired(circuitId, v.retiredAt);
        v.retiredAt = uint64(block.timestamp);
        emit VerifierRetired(circuitId, v.verifier);
    }

    // --- pause -------------------------------------------------------------------------------

    /// @notice Holds up `register` and `anchorBatch`. Recording goes on.
    function pause() external onlyRole(PAUSER_ROLE) {
        _pause();
    }

    /// @notice Ends a pause.
    function unpause() external onlyRole(PAUSER_ROLE) {
        _unpause();
    }

    // --- batches -----------------------------------------------------------------------------

    /// @notice Publishes a batch of statements in the sender's name, bound to a checkpoint of its ledger.
    /// @dev Nothing is verified. The same again changes nothing, even after later checkpoints.
    /// @param checkpoint the ledger checkpoint; of one log its size never falls, and one size has one root
    /// @param batchRoot root over the statements' leaves; zero anchors the checkpoint alone
    /// @return anchored false if the sender had published exactly this before
    function anchorBatch(Checkpoint calldata checkpoint, bytes32 batchRoot)
        external
        whenNotPaused
        returns (bool anchored)
    {
        return _anchorBatch(checkpoint, batchRoot);
    }

    // --- registration ------------------------------------------------------------------------

    /// @notice Registers the first or the next version of an agreement's terms.
    /// @dev The first version may lie in the past. A later one takes effect only after its block, so that no
    ///      amendment reaches a period that has begun.
    /// @param reg the terms; the sender is the issuer
    /// @param customerSignature 65 bytes, the customer's EIP-712 signature over `reg`
    function register(Registration calldata reg, bytes calldata customerSignature) external whenNotPaused {
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

    /// @notice Checks a statement and its proof and records it. Where the terms pay for incidents beside the tiers, the
    ///         credit needs a second proof: `verifyAndRecordWithIncidents`.
    /// @dev The periods of an agreement are contiguous from its first start, so of (start, end) and
    ///      (start, end + 1) only one can be recorded. A restatement is the version after the last one of
    ///      the same period and names what it replaces.
    /// @param s the statement with its proof; the sender is one of the agreement's parties
    /// @return recorded false if the same signals stand recorded already: then nothing changes
    function verifyAndRecord(Statement calldata s) external returns (bool recorded) {
        (Sla storage sla, uint256 ctx) = _requireContext(s);
        bytes32 signalsHash = keccak256(abi.encode(s.signals));
        bytes32 key = _recordKey(s.slaId, s.start, s.end, s.statementVersion, ctx, signalsHash);
        if (_records[key] != bytes32(0)) return false;

        _requireTerms(s, sla.termsVersion);
        _advance(s, sla);
        _requireAccepted(s, s.circuitId);
        address verifier = _requireProof(s.circuitId, s.proof, s.signals);

        bytes32 proofHash = keccak256(abi.encodePacked(s.proof));
        _records[key] = keccak256(abi.encode(s.slaId, proofHash, verifier)) & NOT_REPLACED;
        _emitRecorded(s, s.circuitId, signalsHash, proofHash, verifier);
        return true;
    }

    /// @notice Checks a statement whose terms pay for incidents beside the tiers, with both of its proofs, and records
    ///         it. The credit is signal 1 of the second proof; that of the first is the tiers' share before cap,
    ///         minimum and rounding.
    /// @dev Such terms are registered with pairs of circuits (`pairOf`) and with no circuit alone, so the first proof
    ///      by itself is refused by `verifyAndRecord`, and a single circuit here. Both proofs have one ctx and one
    ///      termsHash, and the second starts from what the first shows. The rest is as in `verifyAndRecord`, with
    ///      the hash of the pair, of all twelve signals and of both proofs in the places of the single ones.
    /// @param s the statement with its first proof; the sender is one of the agreement's parties
    /// @param c the second proof
    /// @return recorded false if the same signals stand recorded already: then nothing changes
    function verifyAndRecordWithIncidents(Statement calldata s, IncidentCredit calldata c)
        external
        returns (bool recorded)
    {
        (Sla storage sla, uint256 ctx) = _requireContext(s);
        _requireBound(s, c);
        bytes32 signalsHash = keccak256(abi.encode(s.signals, c.signals));
        bytes32 key = _recordKey(s.slaId, s.start, s.end, s.statementVersion, ctx, signalsHash);
        if (_records[key] != bytes32(0)) return false;

        _requireTerms(s, sla.termsVersion);
        _advance(s, sla);
        _requireAccepted(s, pairOf(s.circuitId, c.circuitId));
        address verifier = _requireProof(s.circuitId, s.proof, s.signals);
        _records[key] = _recordPair(s, c, signalsHash, verifier) & NOT_REPLACED;
        return true;
    }

    // --- views -------------------------------------------------------------------------------

    /// @notice The agreement's parties and progress; all zero where none is registered.
    /// @param slaId the agreement
    /// @return What is held about it
    function slaOf(bytes32 slaId) external view returns (Sla memory) {
        return _slas[slaId];
    }

    /// @notice One version of the terms; all zero where there is none.
    /// @param slaId the agreement
    /// @param termsVersion the version
    /// @return What is held about it
    function termsOf(bytes32 slaId, uint32 termsVersion) external view returns (Terms memory) {
        return _terms[slaId][termsVersion];
    }

    /// @notice Whether a version of the terms accepts proofs of a circuit, or of a pair of circuits.
    /// @param slaId the agreement
    /// @param termsVersion the version of the terms
    /// @param circuitId the circuit, or the pair
    /// @return True if both parties agreed to it
    function acceptsCircuit(bytes32 slaId, uint32 termsVersion, bytes32 circuitId) external view returns (bool) {
        return _circuits[slaId][termsVersion][circuitId];
    }

    /// @notice The verifier of a circuit; all zero where none was added.
    /// @param circuitId the circuit
    /// @return What is held about it
    function verifierOf(bytes32 circuitId) external view returns (Verifier memory) {
        return _verifiers[circuitId];
    }

    /// @notice The one slot of a recorded statement, or zero.
    /// @param slaId the agreement
    /// @param start start of the period
    /// @param end end of the period
    /// @param statementVersion the version
    /// @param ctx its context signal
    /// @param signalsHash as in its event
    /// @return keccak256(abi.encode(slaId, proofHash, verifier)), of two proofs
    ///         keccak256(abi.encode(slaId, proofHash, verifier, incidentVerifier)), but for the lowest bit, which is 1
    ///         exactly if a later version replaced the statement
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
    /// @param reg the terms
    /// @return The digest
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
    /// @param slaId the agreement
    /// @param start start of the period
    /// @param end end of the period
    /// @param termsVersion the version of the terms
    /// @param statementVersion the version of the statement
    /// @param prevCtx ctx of the version before; zero for the first
    /// @return ctx, 248 bits
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
    /// @param issuer the provider
    /// @param customer the customer
    /// @param nonce tells agreements of the same parties apart
    /// @return slaId
    function slaIdOf(address issuer, address customer, bytes32 nonce) public pure returns (bytes32) {
        return keccak256(abi.encode(issuer, customer, nonce));
    }

    /// @notice Two circuits that prove a statement together, as registrations and events name them.
    /// @param circuitId the circuit of the period
    /// @param incidentCircuitId the circuit of the incident credit
    /// @return The id of the pair; neither the order nor one of the two can change without it
    function pairOf(bytes32 circuitId, bytes32 incidentCircuitId) public pure returns (bytes32) {
        return keccak256(abi.encode(PAIR_TAG, circuitId, incidentCircuitId));
    }

    /// @notice A statement as a leaf of a batch. It is hashed twice so that it can never pass for an inner node.
    /// @param ctx the context signal
    /// @param signalsHash keccak256(abi.encode(signals)), of two proofs keccak256(abi.encode(signals, signals))
    /// @param proofHash keccak256 of the proof's 256 bytes, of two proofs of all 512
    /// @param circuitId the circuit of the proof, of two proofs their pair
    /// @return The leaf
    function leafOf(uint256 ctx, bytes32 signalsHash, bytes32 proofHash, bytes32 circuitId)
        public
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(keccak256(abi.encode(LEAF_TAG, ctx, signalsHash, proofHash, circuitId))));
    }

    // --- rules -------------------------------------------------------------------------------

    function _requireCustomer(Registration calldata reg, bytes calldata signature) private view {
        (address recovered, ECDSA.RecoverError error_,) = ECDSA.tryRecover(registrationDigest(reg), signature);
        if (error_ != ECDSA.RecoverError.NoError || recovered != reg.customer) {
            revert CustomerSignatureInvalid(reg.customer, recovered);
        }
    }

    /// @dev A party of a known agreement sends it, every signal is below the field's order, and the proof is for this
    ///      chain, registry, agreement, period and version.
    function _requireContext(Statement calldata s) private view returns (Sla storage sla, uint256 ctx) {
        sla = _slas[s.slaId];
        if (sla.termsVersion == 0) revert UnknownSla(s.slaId);
        if (msg.sender != sla.issuer && msg.sender != sla.customer) revert NotParty(s.slaId, msg.sender);
        _requireInField(s.signals, 0);
        ctx = ctxOf(s.slaId, s.start, s.end, s.termsVersion, s.statementVersion, s.prevCtx);
        if (s.signals[2] != ctx) revert CtxMismatch(ctx, s.signals[2]);
    }

    /// @dev The second proof is about the same statement, under the same terms, and starts from what the first shows.
    function _requireBound(Statement calldata s, IncidentCredit calldata c) private pure {
        _requireInField(c.signals, 6);
        if (c.signals[2] != s.signals[2]) revert CtxMismatch(s.signals[2], c.signals[2]);
        if (c.signals[3] != s.signals[1]) revert TierCreditMismatch(s.signals[1], c.signals[3]);
        if (c.signals[4] != s.signals[4]) revert TermsHashMismatch(s.signals[4], c.signals[4]);
    }

    /// @dev `offset` tells the second proof's signals from the first's in the error.
    function _requireInField(uint256[6] calldata signals, uint256 offset) private pure {
        for (uint256 i = 0; i < 6; ++i) {
            if (signals[i] >= R) revert SignalOutOfField(offset + i);
        }
    }

    /// @dev Both parties agreed to the circuit, or to the pair.
    function _requireAccepted(Statement calldata s, bytes32 circuitId) private view {
        if (!_circuits[s.slaId][s.termsVersion][circuitId]) {
            revert CircuitNotAccepted(s.slaId, s.termsVersion, circuitId);
        }
    }

    /// @dev The version named is in force from the period's start to its end, since a change inside a period splits it;
    ///      the proof is about its terms, and the period is over and has as many windows as the proof says.
    function _requireTerms(Statement calldata s, uint32 latestVersion) private view {
        Terms storage t = _terms[s.slaId][s.termsVersion];
        uint32 v = s.termsVersion;
        bool inForce = v != 0 && v <= latestVersion && t.effectiveFrom <= s.start
            && (v == latestVersion || _terms[s.slaId][v + 1].effectiveFrom >= s.end);
        if (!inForce) revert TermsNotInForce(v, s.start, s.end);
        if (s.signals[4] != t.termsHash) revert TermsHashMismatch(t.termsHash, s.signals[4]);

        uint256 windows = (s.signals[0] >> 8) & 0x3ff;
        uint256 windowNs = uint256(t.windowSeconds) * NS_PER_SECOND;
        if (windows == 0 || uint256(s.start) + windows * windowNs != s.end) {
            revert PeriodLengthInvalid(s.start, s.end, windows);
        }
        uint256 nowNs = block.timestamp * NS_PER_SECOND;
        if (s.end > nowNs) revert PeriodNotOver(s.end, nowNs);
    }

    /// @dev Version 1 moves the agreement's frontier; a later version marks the one that it replaces, so that each
    ///      is replaced once and the versions of a period are a chain without forks.
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
        if (version == 0 || s.start >= sla.nextStart) revert StatementVersionInvalid(version);
        bytes32 replaced = _recordKey(s.slaId, s.start, s.end, version - 1, s.prevCtx, s.prevSignalsHash);
        bytes32 record = _records[replaced];
        if (record == bytes32(0)) revert PreviousStatementUnknown(s.prevCtx, s.prevSignalsHash);
        if (record & REPLACED != bytes32(0)) revert PreviousStatementReplaced(s.prevCtx);
        _records[replaced] = record | REPLACED;
    }

    /// @dev The only place that calls a verifier: with explicit gas, and any answer but true reverts.
    function _requireProof(bytes32 circuitId, uint256[8] calldata proof, uint256[6] calldata signals)
        private
        view
        returns (address verifier)
    {
        Verifier storage v = _verifiers[circuitId];
        verifier = v.verifier;
        if (verifier == address(0)) revert UnknownCircuit(circuitId);
        uint64 retiredAt = v.retiredAt;
        if (retiredAt != 0) revert CircuitRetired(circuitId, retiredAt);
        // Code can change where an account delegates (EIP-7702) or was made and destroyed in one transaction.
        bytes32 codeHash = v.codeHash;
        if (verifier.codehash != codeHash) revert VerifierCodeChanged(circuitId, codeHash, verifier.codehash);
        if (gasleft() < VERIFIER_GAS_LEFT) revert NotEnoughGas(VERIFIER_GAS_LEFT, gasleft());
        if (!IGroth16Verifier(verifier).verifyProof{gas: VERIFIER_GAS}(proof, signals)) {
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

    /// @dev Checks the second proof and tells of both; what the record of the pair is.
    function _recordPair(
        Statement calldata s,
        IncidentCredit calldata c,
        bytes32 signalsHash,
        address verifier
    ) private returns (bytes32) {
        address incidentVerifier = _requireProof(c.circuitId, c.proof, c.signals);
        bytes32 proofHash = keccak256(abi.encodePacked(s.proof, c.proof));
        _emitRecorded(s, pairOf(s.circuitId, c.circuitId), signalsHash, proofHash, verifier);
        emit IncidentCreditRecorded(
            s.slaId, s.signals[2], c.signals[1], s.circuitId, c.circuitId, incidentVerifier
        );
        return keccak256(abi.encode(s.slaId, proofHash, verifier, incidentVerifier));
    }

    function _emitRecorded(
        Statement calldata s,
        bytes32 circuitId,
        bytes32 signalsHash,
        bytes32 proofHash,
        address verifier
    ) private {
        emit StatementRecorded(
            s.slaId,
            s.signals[2],
            leafOf(s.signals[2], signalsHash, proofHash, circuitId),
            s.start,
            s.end,
            s.termsVersion,
            s.statementVersion,
            circuitId,
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
