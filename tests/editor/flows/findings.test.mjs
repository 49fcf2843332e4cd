// A wrong number: underlined, explained, repaired. With the hints around it, this is the core of what a person sees.
import assert from "node:assert/strict";
import { flows } from "../vscode/flow.mjs";
import { recipe } from "../vscode/workspace.mjs";

const flow = flows();

const FLATTENED = 1 + recipe("wrong_in_features.py").split("\n").findIndex((line) => line.includes("torch.flatten"));
const MESSAGE = `fc1 gets 400 features (16·5·5, flattened on line ${FLATTENED}) but in_features is 576`;

flow("a wrong in_features is underlined at the argument and explained in Problems", { open: "wrong_in_features.py" }, async ({ vscode }) => {
  await vscode.lens("parameters"); // It comes above the class and moves all lines, the squiggle with them.
  const argument = await vscode.still("nn.Linear(16 * 6 * 6", "16 * 6 * 6");
  const [squiggle] = await vscode.squiggles(1);
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
  await cursor.filter({ hasText: `Ln ${FLATTENED}` }).waitFor();
});

flow("the quick fix writes the right number and the squiggle goes", { open: "wrong_in_features.py", goesOn: true }, async ({ vscode, workspace }) => {
  await vscode.squiggles(1);
  const hover = await vscode.hover("nn.Linear(16 * 6 * 6", "6 * 6", "fc1 gets 400 features");
  assert.ok(hover.includes("linear-in-features"), hover);
  await vscode.quickFixes("nn.Linear(16 * 6 * 6", "6 * 6", "16 * 5 * 5");
  await vscode.page.keyboard.press("Enter");
  await vscode.lineWith("self.fc1 = nn.Linear(16 * 5 * 5, 120)", "→ [B, 120]");
  await vscode.squiggles(0);
  await vscode.save();
  assert.equal(workspace.read("wrong_in_features.py"), recipe("wrong_in_features.py").replace("16 * 6 * 6", "16 * 5 * 5"));
});
