// Generated from circuits.json by `sla-ledger generate`; never edited.
pragma circom 2.1.6;

include "../incident_credit.circom";

component main {public [ctx, tierCredit, termsHash, incidentRoot]} =
    IncidentCredit(64);
