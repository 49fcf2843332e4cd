// Where things lie: the repository, the extension's .vsix, the Python that has torch, the test output.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const editorTests = resolve(dirname(fileURLToPath(import.meta.url)), "..");
export const repository = resolve(editorTests, "../..");
export const testOutput = join(repository, "test-output", "editor");

/** An older code-server that is to be tested, as its version, from CODE_SERVER; the pinned one otherwise. `setup.sh` has installed it. */
export const olderCodeServer = process.env.CODE_SERVER;
const installed = olderCodeServer ? join(editorTests, ".older", olderCodeServer) : editorTests;
/** The Node that code-server runs on: an older one does on the machine's. */
export const codeServerNode = olderCodeServer ? "node" : join(editorTests, ".bin24", "node");
export const codeServerEntry = join(installed, "node_modules", "code-server", "out", "node", "entry.js");

/** What finds in a page what keeps people out who cannot see or use a mouse: the text of axe-core. */
export const axeSource = readFileSync(join(editorTests, "node_modules", "axe-core", "axe.min.js"), "utf8");

/** The newest .vsix of the extension for all platforms, as another test makes one for each meanwhile; SHAPELENS_VSIX names another one. Throws when there is none. */
export function vsix() {
  if (process.env.SHAPELENS_VSIX) return resolve(process.env.SHAPELENS_VSIX);
  const folders = [join(repository, "vscode-extension"), join(repository, "dist")].filter((folder) => existsSync(folder));
  const found = folders.flatMap((folder) => readdirSync(folder).filter((name) => /^shapelens-\d[^-]*\.vsix$/.test(name)).map((name) => join(folder, name)));
  found.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  if (!found.length) throw new Error("there is no .vsix to test: run `make vsix` first");
  return found[0];
}

/** The interpreter that has torch: the project's own environment; SHAPELENS_TEST_PYTHON names another one. Throws when there is none. */
export function pythonWithTorch() {
  const python = process.env.SHAPELENS_TEST_PYTHON ?? join(repository, ".venv", "bin", "python");
  if (!existsSync(python)) throw new Error(`there is no Python with torch at ${python}: run \`make setup\` first`);
  return python;
}

/** Path of Chromium: CHROMIUM, or the first known name on PATH. Throws when there is none. */
export function chromium() {
  const names = [process.env.CHROMIUM, "chromium", "chromium-browser", "google-chrome"].filter(Boolean);
  for (const name of names) {
    try {
      return execFileSync("sh", ["-c", 'command -v "$1"', "sh", name], { encoding: "utf8" }).trim();
    } catch {
      // The next name may be there.
    }
  }
  throw new Error("there is no Chromium: run tests/editor/setup.sh, or name one in CHROMIUM");
}
