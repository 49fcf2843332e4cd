// Runs the flows in a real VS Code, two files at a time where the machine has two processors, and prints what node's test runner says of them.
// usage: run.mjs [FLOW ...]   (names of files in flows/, without .test.mjs; all by default; core: the ones of CORE)
//        run.mjs --failed     (the files in which a flow failed the last time, one after the other)
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { shareExtension } from "./vscode/code_server.mjs";
import { editorTests, testOutput, vsix } from "./vscode/paths.mjs";

/** What a person sees first, in half a minute: hints, a squiggle, its fix. */
const CORE = ["findings"];

const folder = join(editorTests, "flows");
const all = readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).map((name) => name.replace(/\.test\.mjs$/, ""));
/** Names of the files in which a flow failed the last time, as JSON. */
const memory = join(testOutput, "failed.json");
const alone = process.argv.includes("--failed");
const chosen = alone ? JSON.parse(readFileSync(memory, "utf8")) : process.argv.slice(2);
const named = chosen.flatMap((name) => (name === "core" ? CORE : [name]));
const unknown = named.filter((name) => !all.includes(name));
if (unknown.length) {
  console.error(`there is no flow ${unknown.join(", ")}; there are ${all.join(", ")}, core`);
  process.exit(2);
}
const files = (named.length ? named : all).map((name) => join(folder, `${name}.test.mjs`));
// The longest first, so that no processor is idle at the end: how long the text is says it well enough.
files.sort((a, b) => statSync(b).size - statSync(a).size);

const removeExtension = shareExtension(vsix());
process.once("exit", removeExtension);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

const failed = new Set();
process.once("exit", () => {
  mkdirSync(dirname(memory), { recursive: true });
  writeFileSync(memory, JSON.stringify([...failed]));
});

/** Runs the flows of a file. What tells of a flow that failed names the file in which `test` is called, which is flow.mjs for most. */
async function runFile(file) {
  const results = run({ files: [file] });
  results.on("test:fail", () => {
    process.exitCode = 1;
    failed.add(basename(file, ".test.mjs"));
  });
  for await (const text of results.compose(spec)) process.stdout.write(text);
}

const waiting = [...files];
async function runWaiting() {
  while (waiting.length) await runFile(waiting.shift());
}
await Promise.all(Array.from({ length: alone ? 1 : Math.min(2, availableParallelism()) }, runWaiting));
