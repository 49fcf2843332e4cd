// Nothing of a stranger's folder runs before the user trusts it.
import assert from "node:assert/strict";
import { flows } from "../vscode/flow.mjs";
import { notebook } from "../vscode/notebook_file.mjs";
import { shapelensProcesses } from "../vscode/processes.mjs";

const flow = flows({ trust: "asked" });

flow("a restricted workspace runs nothing, and shows hints once it is trusted, without a reload", {}, async ({ vscode, codeServer }) => {
  await vscode.status("waits until the workspace is trusted");
  assert.deepEqual(shapelensProcesses(codeServer.pid), []);
  assert.ok(!(await vscode.lines()).some((line) => line.includes("→")), "a hint in a restricted workspace");

  await vscode.page.evaluate(() => (window.notReloaded = true));
  await vscode.grantTrust();

  await vscode.lineWith("nn.Conv2d(3, 6, 5)", "→ [B, 6, 28, 28]");
  assert.equal(await vscode.page.evaluate(() => window.notReloaded), true);
});

const CELLS = ["import torch", "x = torch.rand(4, 3)", "y = x.T @ x"];

flow("a notebook in a restricted workspace runs nothing either", { files: { "cells.ipynb": notebook(...CELLS) } }, async ({ vscode, codeServer }) => {
  await vscode.openNotebook("cells.ipynb");
  await vscode.status("waits until the workspace is trusted");
  assert.deepEqual(shapelensProcesses(codeServer.pid), []);
  assert.ok(!(await vscode.lines()).some((line) => line.includes("→")), "a hint in a restricted workspace");

  await vscode.grantTrust();

  await vscode.lineWith("y = x.T @ x", "→ [3, 3]");
});
