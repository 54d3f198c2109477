// SPDX-License-Identifier: Apache-2.0
// Compiles generated/standard-json/input.json once more, for slither: writes the sources, and compiler input
// and output as a Hardhat build-info file, into the folder given as the one argument. `contracts/slither.py`
// runs it next to an installed node_modules.
"use strict";

const fs = require("fs");
const path = require("path");
const solc = require("solc");

function write(file, text) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

function main(out) {
  const input = JSON.parse(fs.readFileSync(path.join(__dirname, "input.json"), "utf8"));
  input.settings.outputSelection = {
    "*": { "": ["ast"], "*": ["abi", "evm.bytecode", "evm.deployedBytecode", "evm.methodIdentifiers", "metadata"] },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  for (const [name, source] of Object.entries(input.sources)) write(path.join(out, name), source.content);
  const version = { solcVersion: solc.version().split("+")[0], solcLongVersion: solc.version() };
  const info = { id: "all", _format: "hh-sol-build-info-1", ...version, input, output };
  write(path.join(out, "artifacts/build-info/all.json"), JSON.stringify(info));
  write(path.join(out, "hardhat.config.js"), "module.exports = {};\n");
}

main(process.argv[2]);
