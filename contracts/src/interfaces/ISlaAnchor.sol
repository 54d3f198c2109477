// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title What the registry of agreements takes, keeps, tells and refuses
/// @notice The shapes, events and errors of `SlaAnchor`.
/// @dev Times are nanoseconds since the Unix epoch unless they are named seconds.
interface ISlaAnchor {
    /// @notice One version of an agreement's terms, as both parties agree to it.
    /// @param issuer the provider; registers, and records
    /// @param customer signs the terms, and may record
    /// @param nonce tells agreements of the same parties apart
    /// @param termsHash the field element that proofs name
    /// @param termsVersion counts from 1
    /// @param effectiveFrom from when on they hold
    /// @param firstStart start of the agreement's first period
    /// @param windowSeconds length of a window
    /// @param circuitIds the circuits whose proofs are accepted; of terms that pay for incidents beside the tiers pairs
    ///        of circuits (`pairOf`) and nothing else
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
    /// @param slaId the agreement
    /// @param start start of the period
    /// @param end end of the period
    /// @param termsVersion the terms in force at the start
    /// @param statementVersion counts from 1
    /// @param prevCtx ctx of the statement that this one replaces
    /// @param prevSignalsHash keccak256(abi.encode(signals)) of the statement that this one replaces
    /// @param circuitId the circuit of the proof
    /// @param signals summary, credit, ctx, telemetryRoot, termsHash, baseCommit
    /// @param proof A.x, A.y, B.x1, B.x0, B.y1, B.y0, C.x, C.y
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

    /// @notice The second proof of a statement whose terms pay for incidents beside the tiers.
    /// @param circuitId the circuit of the proof
    /// @param signals summary, credit, ctx, tierCredit, termsHash, incidentRoot; only this credit is the statement's
    /// @param proof A.x, A.y, B.x1, B.x0, B.y1, B.y0, C.x, C.y
    struct IncidentCredit {
        bytes32 circuitId;
        uint256[6] signals;
        uint256[8] proof;
    }

    /// @notice The agreement: its parties and how far its periods are recorded.
    /// @param issuer the provider
    /// @param nextStart where the next period starts: all before are recorded
    /// @param termsVersion the latest version of the terms
    /// @param customer the customer
    /// @param firstStart start of the first period
    struct Sla {
        address issuer;
        uint64 nextStart;
        uint32 termsVersion;
        address customer;
        uint64 firstStart;
    }

    /// @notice One registered version of the terms.
    /// @param termsHash the field element that proofs name
    /// @param effectiveFrom from when on they hold
    /// @param windowSeconds length of a window
    struct Terms {
        uint256 termsHash;
        uint64 effectiveFrom;
        uint32 windowSeconds;
    }

    /// @notice A verifier, and the hash that its code must have whenever it is asked.
    /// @param verifier its address
    /// @param retiredAt when it was retired, in seconds; zero while it serves
    /// @param codeHash hash of its code when it was added
    struct Verifier {
        address verifier;
        uint64 retiredAt;
        bytes32 codeHash;
    }

    /// @notice A version of an agreement's terms was registered.
    /// @param slaId the agreement
    /// @param issuer the provider
    /// @param customer the customer
    /// @param termsVersion counts from 1
    /// @param termsHash the field element that proofs name
    /// @param effectiveFrom from when on they hold
    /// @param firstStart start of the agreement's first period
    /// @param windowSeconds length of a window
    /// @param circuitIds the circuits, or pairs of circuits, whose proofs are accepted
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
    /// @param circuitId the circuit
    /// @param verifier its verifier
    /// @param codeHash hash of the verifier's code
    event VerifierAdded(bytes32 indexed circuitId, address indexed verifier, bytes32 codeHash);
    /// @notice A verifier was retired: no proof of its circuit is recorded any more.
    /// @param circuitId the circuit
    /// @param verifier its verifier
    event VerifierRetired(bytes32 indexed circuitId, address indexed verifier);
    /// @notice A statement was proved and recorded.
    /// @param slaId the agreement
    /// @param ctx the context signal
    /// @param leaf the statement as a leaf of a batch
    /// @param start start of the period
    /// @param end end of the period
    /// @param termsVersion the terms it was judged by
    /// @param statementVersion counts from 1
    /// @param circuitId the circuit of the proof, of two proofs their pair
    /// @param signalsHash keccak256(abi.encode(signals)), of two proofs keccak256(abi.encode(signals, signals))
    /// @param proofHash keccak256 of the proof's 256 bytes, of two proofs of all 512
    /// @param verifier the verifier that accepted the proof, of two proofs the first
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

    /// @notice A statement was recorded with a second proof, of its incident credit; follows its StatementRecorded.
    /// @param slaId the agreement
    /// @param ctx the context signal
    /// @param credit signal 1 of the second proof: the statement's credit, or a commitment to it
    /// @param circuitId the circuit of the first proof
    /// @param incidentCircuitId the circuit of the second
    /// @param incidentVerifier the verifier that accepted the second proof
    event IncidentCreditRecorded(
        bytes32 indexed slaId,
        uint256 indexed ctx,
        uint256 indexed credit,
        bytes32 circuitId,
        bytes32 incidentCircuitId,
        address incidentVerifier
    );

    /// @notice A role needs a holder: admin and registrar are not the zero address.
    error RoleWithoutHolder();
    /// @notice Only the issuer registers; `issuer` must be the sender.
    /// @param issuer the issuer of the registration
    /// @param sender who sent it
    error NotIssuer(address issuer, address sender);
    /// @notice Only issuer or customer records.
    /// @param slaId the agreement
    /// @param sender who sent the statement
    error NotParty(bytes32 slaId, address sender);
    /// @notice A party is missing, or issuer and customer are the same.
    /// @param issuer the issuer given
    /// @param customer the customer given
    error InvalidParties(address issuer, address customer);
    /// @notice The signature over the registration is not the customer's.
    /// @param customer who must sign
    /// @param recovered who signed; zero where it is no signature
    error CustomerSignatureInvalid(address customer, address recovered);
    /// @notice Versions of the terms start at 1 and have no gaps.
    /// @param expected the next version
    /// @param given the version given
    error TermsVersionNotNext(uint32 expected, uint32 given);
    /// @notice termsHash is zero or not below the scalar field, or a window has no length.
    error InvalidTerms();
    /// @notice Version 1 must be in force at the first period's start.
    /// @param firstStart start of the first period
    /// @param effectiveFrom when the terms given begin
    error FirstTermsTooLate(uint64 firstStart, uint64 effectiveFrom);
    /// @notice An amendment takes effect later than its block and than the version before it.
    /// @param notBefore the instant it must be later than
    /// @param effectiveFrom when the terms given begin
    error AmendmentNotInFuture(uint256 notBefore, uint64 effectiveFrom);
    /// @notice The start of the first period cannot be amended.
    /// @param registered the start that stands
    /// @param given the start given
    error FirstStartChanged(uint64 registered, uint64 given);
    /// @notice No agreement is registered under this id.
    /// @param slaId the id given
    error UnknownSla(bytes32 slaId);
    /// @notice The address added as a verifier has no code.
    /// @param verifier the address given
    error NotAContract(address verifier);
    /// @notice Verifiers are add-only: this circuit has one.
    /// @param circuitId the circuit
    /// @param verifier the verifier it has
    error VerifierExists(bytes32 circuitId, address verifier);
    /// @notice The verifier's code is not what was added: whatever it answers now, nobody looked at it.
    /// @param circuitId the circuit
    /// @param added hash of the code that was added
    /// @param found hash of the code that is there
    error VerifierCodeChanged(bytes32 circuitId, bytes32 added, bytes32 found);
    /// @notice The circuit's verifier was retired, for good.
    /// @param circuitId the circuit
    /// @param retiredAt when, in seconds
    error CircuitRetired(bytes32 circuitId, uint64 retiredAt);
    /// @notice No verifier was added for this circuit.
    /// @param circuitId the circuit
    error UnknownCircuit(bytes32 circuitId);
    /// @notice The terms do not accept proofs of this circuit, or of this pair of circuits.
    /// @param slaId the agreement
    /// @param termsVersion the version of the terms
    /// @param circuitId the circuit, or the pair
    error CircuitNotAccepted(bytes32 slaId, uint32 termsVersion, bytes32 circuitId);
    /// @notice A public signal is not below the scalar field.
    /// @param index position of the signal; those of a second proof count from 6
    error SignalOutOfField(uint256 index);
    /// @notice The proof was made for another chain, registry, agreement, period or version.
    /// @param expected ctx of this statement
    /// @param given ctx of the proof
    error CtxMismatch(uint256 expected, uint256 given);
    /// @notice The proof of the incident credit starts from another amount of the tiers.
    /// @param shown signal 1 of the first proof
    /// @param given signal 3 of the second
    error TierCreditMismatch(uint256 shown, uint256 given);
    /// @notice The proof was made under other terms.
    /// @param registered termsHash that is registered
    /// @param given termsHash of the proof
    error TermsHashMismatch(uint256 registered, uint256 given);
    /// @notice This version of the terms was not in force from the period's start to its end.
    /// @param termsVersion the version given
    /// @param start start of the period
    /// @param end end of the period
    error TermsNotInForce(uint32 termsVersion, uint64 start, uint64 end);
    /// @notice The period is empty, no whole number of windows, or not as many as the proof says.
    /// @param start start of the period
    /// @param end end of the period
    /// @param windowsInProof how many windows the proof is about
    error PeriodLengthInvalid(uint64 start, uint64 end, uint256 windowsInProof);
    /// @notice The period has not ended.
    /// @param end end of the period
    /// @param nowNs time of the block
    error PeriodNotOver(uint64 end, uint256 nowNs);
    /// @notice A new period starts where the one before it ended.
    /// @param expectedStart where it must start
    /// @param start where it does
    error PeriodNotContiguous(uint64 expectedStart, uint64 start);
    /// @notice The first statement of a period is version 1; no version is 0.
    /// @param given the version given
    error StatementVersionInvalid(uint32 given);
    /// @notice What a statement replaces is not recorded as the version before it; version 1 replaces nothing.
    /// @param prevCtx ctx that it names
    /// @param prevSignalsHash hash of the signals that it names
    error PreviousStatementUnknown(uint256 prevCtx, bytes32 prevSignalsHash);
    /// @notice The statement to be replaced was replaced before: a restatement replaces the last version.
    /// @param prevCtx ctx that it names
    error PreviousStatementReplaced(uint256 prevCtx);
    /// @notice The verifier refuses the proof.
    /// @param circuitId the circuit
    error ProofInvalid(bytes32 circuitId);
    /// @notice The transaction's gas limit is too low for the verification.
    /// @param needed gas that must be left
    /// @param left gas that is
    error NotEnoughGas(uint256 needed, uint256 left);
}
