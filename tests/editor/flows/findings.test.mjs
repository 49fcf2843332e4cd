// A wrong number: underlined, explained, repaired.
import assert from "node:assert/strict";
import { flows } from "../vscode/flow.mjs";
import { recipe } from "../vscode/workspace.mjs";

const flow = flows();

const FLATTENED = 1 + recipe("wrong_in_features.py").split("\n").findIndex((line) => line.includes("torch.flatten"));
const MESSAGE = `fc1 gets 400 features (16·5·5, flattened on line ${FLATTENED}) but in_features is 576`;

flow("a wrong in_features is underlined at the argument and explained in Problems", { open: "wrong_in_features.py" }, async ({ vscode }) => {
  const [squiggle] = await vscode.squiggles(1);
  const argument = await vscode.box("nn.Linear(16 * 6 * 6", "16 * 6 * 6");
  assert.ok(Math.abs(squiggle.x - argument.x) < 3 && Math.abs(squiggle.width - argument.width) < 3, JSON.stringify({ squiggle, argument }));
  assert.ok(Math.abs(squiggle.y - argument.y) < argument.height, JSON.stringify({ squiggle, argument }));
  // The analysis goes on past the error.
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");

  const rows = await vscode.problems(MESSAGE);
  assert.ok(rows.some((row) => row.includes("linear-in-features")), rows.join("\n"));

  // The related location leads to where the features come from.
  await vscode.page.locator(".markers-panel .monaco-list-row", { hasText: MESSAGE }).first().click();
  await vscode.page.keyboard.press("ArrowRight");
  const related = vscode.page.locator(".markers-panel .monaco-list-row", { hasText: `Ln ${FLATTENED}` }).first();
  await related.dblclick();
  const cursor = vscode.page.locator('[id="status.editor.selection"]');
  await cursor.filter({ hasText: `Ln ${FLATTENED}` }).waitFor({ timeout: 10_000 });
});

flow("the quick fix writes the right number and the squiggle goes", { open: "wrong_in_features.py" }, async ({ vscode, workspace }) => {
  await vscode.squiggles(1);
  const hover = await vscode.hover("nn.Linear(16 * 6 * 6", "6 * 6", "fc1 gets 400 features");
  assert.ok(hover.includes("linear-in-features"), hover);
  const fixes = await vscode.quickFixes("nn.Linear(16 * 6 * 6", "6 * 6");
  await fixes.filter({ hasText: /400/ }).first().waitFor({ timeout: 10_000 });
  await vscode.page.keyboard.press("Enter");
  await vscode.lineWith("self.fc1 = nn.Linear(400, 120)", "→ [B, 120]");
  await vscode.squiggles(0);
  await vscode.save();
  assert.equal(workspace.read("wrong_in_features.py"), recipe("wrong_in_features.py").replace("16 * 6 * 6", "400"));
});

flow("typing a wrong number is underlined without saving, and undoing it clears it", {}, async ({ vscode }) => {
  await vscode.lineWith("return x", "→ [B, 10]");
  await vscode.retype("nn.Conv2d(6, 16, 5)", "6", "8");
  await vscode.squiggles(1);
  await vscode.problems("conv2 gets 6 channels");
  await vscode.click("self.conv2 = nn.Conv2d(8", "self");
  await vscode.retype("nn.Conv2d(8, 16, 5)", "8", "6");
  await vscode.squiggles(0);
});

flow("half-typed code keeps the hints of the rest", {}, async ({ vscode }) => {
  await vscode.lineWith("return x", "→ [B, 10]");
  await vscode.click("import torch.nn.functional as F", "torch");
  await vscode.page.keyboard.press("End");
  await vscode.page.keyboard.press("Enter");
  await vscode.page.keyboard.type("def half(");
  await vscode.lineWith("def half(");
  // The first editor's hints may be moved by VS Code itself; a second editor has none yet and asks the server.
  await vscode.command("View: Split Editor Right");
  await vscode.page.locator(".editor-group-container").nth(1).waitFor({ timeout: 10_000 });
  await vscode.lineWith("self.conv1 = nn.Conv2d(3, 6, 5)", "→ [B, 6, 28, 28]");
  await vscode.squiggles(0);
});
