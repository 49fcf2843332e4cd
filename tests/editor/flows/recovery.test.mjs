// Processes end; ShapeLens comes back by itself.
import assert from "node:assert/strict";
import { flows } from "../vscode/flow.mjs";
import { languageServer, worker } from "../vscode/processes.mjs";
import { eventually } from "../vscode/workbench.mjs";

const flow = flows();

/** Kills the process that `find` gives, and waits until there is another one. */
async function replaced(find) {
  const before = await eventually("the process is there", find);
  process.kill(before.pid, "SIGKILL");
  return eventually("another process took its place", () => {
    const now = find();
    return now.pid !== before.pid && now;
  });
}

// A shape that was never on screen before can only come from a run after the kill.
async function newHintsCome(vscode) {
  await vscode.retype("nn.Linear(84, 10)", "10", "7");
  await vscode.lineWith("self.fc3 = nn.Linear(84, 7)", "→ [B, 7]");
}

flow("the language server is killed and comes back with hints", {}, async ({ vscode, workspace, codeServer }) => {
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  await replaced(() => languageServer(codeServer.pid, workspace.folder));
  await newHintsCome(vscode);
  await vscode.status("ready");
});

flow("the worker is killed and comes back", { goesOn: true }, async ({ vscode, workspace, codeServer }) => {
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  const server = languageServer(codeServer.pid, workspace.folder);
  const before = await eventually("the worker is there", () => worker(codeServer.pid, workspace.folder));
  process.kill(before.pid, "SIGKILL");
  await newHintsCome(vscode);
  assert.notEqual(worker(codeServer.pid, workspace.folder).pid, before.pid);
  assert.equal(languageServer(codeServer.pid, workspace.folder).pid, server.pid, "the server went down with its worker");
});
