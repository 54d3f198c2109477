// The program of the page. Its modules are at hand in the console as `slaLedger`.

import * as agreement from "./agreement.js";
import * as attestability from "./attestability.js";
import * as babyjub from "./babyjub.js";
import * as bytes from "./bytes.js";
import * as calendar from "./calendar.js";
import { checkFiles, conclusion } from "./check_files.js";
import * as credit from "./credit.js";
import * as dates from "./dates.js";
import * as formats from "./formats.js";
import * as groth16 from "./groth16.js";
import * as hashes from "./hashes.js";
import * as json from "./json.js";
import * as merkle from "./merkle.js";
import { startPage } from "./page.js";
import * as parties from "./parties.js";
import * as poseidon from "./poseidon.js";
import * as shape from "./shape.js";
import { loadTables, tables } from "./tables.js";
import * as terms from "./terms.js";
import * as transaction from "./transaction.js";
import * as verify from "./verify.js";

// snarkjs starts workers from a blob, which the page's policy forbids; without them it checks in this thread.
globalThis.Worker = undefined;

loadTables(document.getElementById("tables").textContent);
globalThis.slaLedger = Object.freeze({
  checkFiles,
  conclusion,
  tables,
  modules: Object.freeze({
    agreement,
    attestability,
    babyjub,
    bytes,
    calendar,
    credit,
    dates,
    formats,
    groth16,
    hashes,
    json,
    merkle,
    parties,
    poseidon,
    shape,
    terms,
    transaction,
    verify,
  }),
});
startPage(document);
