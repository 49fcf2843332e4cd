// Nothing of a stranger's folder runs before the user trusts it.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { flows } from "../vscode/flow.mjs";
import { notebook } from "../vscode/notebook_file.mjs";
import { shapelensProcesses } from "../vscode/processes.mjs";

const flow = flows({ trust: "asked" });
const flowWithoutInterpreter = flows({ trust: "asked", machine: {} });

// Everything in a folder that somebody may start or import. Each writes a file as soon as it runs.
const PROGRAM = '#!/bin/sh\ntouch "$(dirname "$0")/ran"\nexit 1\n';
const MODULE = 'import os\nopen(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ran"), "w").close()\n';
const PLANTED = {
  ".venv/bin/python": PROGRAM,
  ".venv/bin/python3": PROGRAM,
  ".venv/pyvenv.cfg": "home = /usr/bin\n",
  "by_project/python": PROGRAM,
  "by_setting/python": PROGRAM,
  "pyproject.toml": "[tool.shapelens]\ninterpreter = 'by_project/python'\nallow = ['network', 'processes']\n",
  "sitecustomize.py": MODULE,
  "usercustomize.py": MODULE,
  "conftest.py": MODULE,
  "shapelens.py": MODULE,
  "shapelens/__init__.py": MODULE,
};
// A trusted workspace may choose the interpreter (the setting is machine-overridable); a restricted one may not.
const SETTINGS = { "shapelens.interpreter": "${workspaceFolder}/by_setting/python", "shapelens.allow": ["processes", "network"] };

/** The folders of the workspace in which something ran. */
function whatRan(workspace) {
  return [".", ".venv/bin", "by_project", "by_setting", "shapelens"].filter((folder) => existsSync(workspace.path(`${folder}/ran`)));
}

flow("what is planted in a restricted workspace does not run, nor once it is trusted", { files: PLANTED }, async ({ vscode, workspace, codeServer }) => {
  await vscode.status("waits until the workspace is trusted");
  assert.deepEqual(shapelensProcesses(codeServer.pid), []);
  assert.deepEqual(whatRan(workspace), []);

  await vscode.grantTrust();

  await vscode.lineWith("nn.Conv2d(3, 6, 5)", "→ [B, 6, 28, 28]");
  assert.deepEqual(whatRan(workspace), []);
});

flow("settings of a restricted workspace start nothing", { files: PLANTED, settings: SETTINGS }, async ({ vscode, workspace, codeServer }) => {
  await vscode.status("waits until the workspace is trusted");
  assert.deepEqual(shapelensProcesses(codeServer.pid), []);
  assert.deepEqual(whatRan(workspace), []);
});

flowWithoutInterpreter("no interpreter is looked for in a restricted workspace", { files: PLANTED, settings: SETTINGS }, async ({ vscode, workspace, codeServer }) => {
  await vscode.status("waits until the workspace is trusted");
  assert.deepEqual(shapelensProcesses(codeServer.pid), []);
  assert.deepEqual(whatRan(workspace), []);
});

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
