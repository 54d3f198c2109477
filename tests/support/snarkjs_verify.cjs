// What snarkjs says to each [key, signals, proof] of a JSON file: true, false, or the error that it ends in.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const [, , modules, questions] = process.argv;
const snarkjs = require(path.join(modules, "snarkjs"));

async function verdict([key, signals, proof]) {
  try {
    return await snarkjs.groth16.verify(key, signals, proof);
  } catch (error) {
    return String(error);
  }
}

async function main() {
  const verdicts = [];
  for (const question of JSON.parse(fs.readFileSync(questions, "utf8"))) verdicts.push(await verdict(question));
  process.stdout.write(JSON.stringify(verdicts));
  process.exit(0);
}

main();
