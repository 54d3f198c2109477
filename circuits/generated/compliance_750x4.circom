// Generated from circuits.json by `sla-ledger generate`; never edited.
pragma circom 2.1.6;

include "../period_compliance.circom";

component main {public [ctx, telemetryRoot, termsHash, baseCommit]} =
    PeriodCompliance(30, 25, 4, 4);
