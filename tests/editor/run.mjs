// Runs the flows in a real VS Code, two files at a time where the machine has two processors, and prints what node's test runner says of them.
// usage: run.mjs [FLOW ...]   (names of files in flows/, without .test.mjs; all by default; core: the ones of CORE)
import { readdirSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { shareExtension } from "./vscode/code_server.mjs";
import { editorTests, vsix } from "./vscode/paths.mjs";

/** What a person sees first, in half a minute: hints, a squiggle, its fix. */
const CORE = ["findings"];

const folder = join(editorTests, "flows");
const all = readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).map((name) => name.replace(/\.test\.mjs$/, ""));
const named = process.argv.slice(2).flatMap((name) => (name === "core" ? CORE : [name]));
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

const results = run({ files, concurrency: Math.min(2, availableParallelism()) });
results.on("test:fail", () => (process.exitCode = 1));
results.compose(spec).pipe(process.stdout);
