// An interpreter without torch: said once, with what to do; the next interpreter is followed without a reload, and the doctor is content with it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { flows } from "../vscode/flow.mjs";
import { pythonWithTorch } from "../vscode/paths.mjs";

const bare = mkdtempSync(join(realpathSync(tmpdir()), "shapelens-bare-"));
const python = join(bare, "bin", "python");
before(() => execFileSync(pythonWithTorch(), ["-m", "venv", "--without-pip", bare]));
after(() => rmSync(bare, { recursive: true, force: true }));

const flow = flows();

flow("a missing torch is said once, with what to do about it", { settings: { "shapelens.interpreter": python } }, async ({ vscode, workspace }) => {
  const toast = await vscode.toast("torch");
  const words = await toast.innerText();
  assert.ok(words.includes(python), words);
  for (const action of ["Select Interpreter", "Copy Install Command", "Show Log"]) {
    await toast.locator(".monaco-button", { hasText: action }).waitFor();
  }
  await vscode.status("PyTorch is not installed");
  assert.equal((await vscode.toasts()).length, 1);
  assert.ok(!(await vscode.lines()).some((line) => line.includes("→")));

  workspace.settings({ "shapelens.interpreter": pythonWithTorch() });
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  await vscode.status("ready");
  await vscode.command("ShapeLens: Doctor");
  await vscode.lineWith("✓ a model with one Linear layer ran");
});
