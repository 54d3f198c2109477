// snarkjs kept in one process: proves once for each line it reads and answers with the proof as JSON.
// Arguments: the folder node_modules, the inputs, the circuit's WebAssembly, the zkey.
"use strict";

const fs = require("fs");
const path = require("path");
const readline = require("readline");

const [modules, inputs, wasm, zkey] = process.argv.slice(2);
const snarkjs = require(path.join(modules, "snarkjs"));

async function serve() {
    const input = JSON.parse(fs.readFileSync(inputs, "utf8"));
    for await (const _ of readline.createInterface({ input: process.stdin })) {
        const { proof } = await snarkjs.groth16.fullProve(input, wasm, zkey);
        process.stdout.write(JSON.stringify(proof) + "\n");
    }
}

serve().then(
    () => process.exit(0),
    (error) => {
        console.error(error);
        process.exit(1);
    },
);
