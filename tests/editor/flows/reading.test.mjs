// What a person reads while the model is written: hints, hovers, the lens, the annotated file, squiggles under what is typed.
import assert from "node:assert/strict";
import { join } from "node:path";
import { flows } from "../vscode/flow.mjs";
import { testOutput } from "../vscode/paths.mjs";

const flow = flows();

// As a real CPU run of the recipe network has them.
const SHAPES = [
  ["self.conv1 = nn.Conv2d(3, 6, 5)", "→ [B, 6, 28, 28]"],
  ["self.pool = nn.MaxPool2d(2, 2)", "→ [B, 6, 14, 14] | [B, 16, 5, 5]"],
  ["self.conv2 = nn.Conv2d(6, 16, 5)", "→ [B, 16, 10, 10]"],
  ["self.fc1 = nn.Linear(16 * 5 * 5, 120)", "→ [B, 120]"],
  ["self.fc2 = nn.Linear(120, 84)", "→ [B, 84]"],
  ["self.fc3 = nn.Linear(84, 10)", "→ [B, 10]"],
  ["def forward(self, x):", "x: [B, 3, 32, 32]"],
  ["x = self.pool(F.relu(self.conv1(x)))", "→ [B, 6, 14, 14]"],
  ["x = self.pool(F.relu(self.conv2(x)))", "→ [B, 16, 5, 5]"],
  ["x = torch.flatten(x, 1)", "→ [B, 400]"],
  ["x = F.relu(self.fc1(x))", "→ [B, 120]"],
  ["x = F.relu(self.fc2(x))", "→ [B, 84]"],
  ["x = self.fc3(x)", "→ [B, 10]"],
];

flow("hints stand at the layers and assignments of the recipe network", {}, async ({ vscode }) => {
  await vscode.lineWith(...SHAPES.at(-1));
  const lines = await vscode.lines();
  for (const [code, hint] of SHAPES) {
    const line = lines.find((line) => line.includes(code));
    assert.ok(line?.trimEnd().endsWith(hint), `${code}: expected ${hint}, the line is ${line}`);
  }
  assert.equal(lines.filter((line) => line.includes("→")).length, SHAPES.filter(([, hint]) => hint.includes("→")).length);
  await vscode.squiggles(0);
  await vscode.status("ShapeLens");
});

flow("a hover on a layer shows input and output, parameters and memory", { goesOn: true }, async ({ vscode }) => {
  await vscode.lineWith("nn.Conv2d(3, 6, 5)", "→ [B, 6, 28, 28]");
  const use = await vscode.hover("self.pool(F.relu(self.conv1", "conv1", "456 parameters");
  for (const words of ["[B, 3, 32, 32]", "[B, 6, 28, 28]", "[6, 3, 5, 5]", "bias"]) assert.ok(use.includes(words), `${words} in ${use}`);
  await vscode.leaveHover();
  const definition = await vscode.hover("self.conv1 = nn.Conv2d", "conv1", "456 parameters");
  assert.ok(definition.includes("[B, 3, 32, 32]") && definition.includes("[B, 6, 28, 28]"), definition);
  await vscode.leaveHover();
  const tensor = await vscode.hover("x = torch.flatten(x, 1)", "x", "[B, 400]");
  assert.ok(tensor.includes("float32"), tensor);
});

flow("typing a wrong number is underlined without saving, and undoing it clears it", { goesOn: true }, async ({ vscode }) => {
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  await vscode.retype("nn.Conv2d(6, 16, 5)", "6", "8");
  await vscode.squiggles(1);
  await vscode.problems("conv2 gets 6 channels");
  await vscode.click("self.conv2 = nn.Conv2d(8", "self");
  await vscode.retype("nn.Conv2d(8, 16, 5)", "8", "6");
  await vscode.squiggles(0);
});

flow("half-typed code keeps the hints of the rest", { goesOn: true }, async ({ vscode }) => {
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  await vscode.click("import torch.nn.functional as F", "torch");
  await vscode.page.keyboard.press("End");
  await vscode.page.keyboard.press("Enter");
  await vscode.page.keyboard.type("def half(");
  await vscode.lineWith("def half(");
  // The first editor's hints may be moved by VS Code itself; a second editor has none yet and asks the server.
  await vscode.command("View: Split Editor Right");
  await vscode.page.locator(".editor-group-container").nth(1).waitFor();
  await vscode.lineWith("self.conv1 = nn.Conv2d(3, 6, 5)", "→ [B, 6, 28, 28]");
  await vscode.squiggles(0);
  await vscode.page.keyboard.press("Control+w");
  await vscode.page.locator(".editor-group-container").nth(1).waitFor({ state: "detached" });
});

flow("the status item leads to the log", { goesOn: true }, async ({ vscode }) => {
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  await (await vscode.status("tensors")).click();
  const row = vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: "Show Log" }).first();
  await row.waitFor();
  await vscode.screenshot(join(testOutput, "status-menu.png"));
  await row.click();
  const panel = vscode.page.locator(".part.panel:visible");
  await panel.waitFor();
  await panel.locator(".view-line", { hasText: "server:" }).first().waitFor();
});

flow("Show Annotated File writes the shapes into the margin of a copy", { goesOn: true }, async ({ vscode, workspace }) => {
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  const before = workspace.read("recipe.py");
  await vscode.command("ShapeLens: Show Annotated File");
  await vscode.page.locator('.editor-group-container.active .tab.active[data-resource-name="recipe (shapes).py"]').waitFor();
  await vscode.lineWith("self.conv2 = nn.Conv2d(6, 16, 5)", "[B, 16, 10, 10]");
  await vscode.lineWith("x = torch.flatten(x, 1)", "[B, 400]");
  await vscode.page.keyboard.type("nothing can be typed here");
  assert.ok(!(await vscode.lines()).some((line) => line.includes("nothing can be typed")));
  assert.equal(workspace.read("recipe.py"), before);
  await vscode.screenshot(join(testOutput, "annotated-file.png"));
  await vscode.page.keyboard.press("Control+w");
  await vscode.page.locator('.tab.active[data-resource-name="recipe.py"]').waitFor();
});

flow("the example is changed through the code lens", { goesOn: true }, async ({ vscode, workspace }) => {
  const lens = await vscode.lens("62\u202f006 parameters");
  assert.match(await lens.textContent(), /^Net · x f32\[B, 3, 32, 32\] · given · /);
  await vscode.chooseFromLens("given", "Set example input");
  const input = await vscode.inputBox();
  assert.equal(await input.inputValue(), "Net()(f32[B:1024, 3, 32, 32])");

  await input.fill("Net()(f32[N:4, 3, 32, 32]");
  await vscode.page.locator(".quick-input-widget .quick-input-message:visible", { hasText: /\S/ }).waitFor();
  await vscode.page.locator(".quick-input-widget .monaco-inputbox.error").waitFor();

  await input.fill("Net()(f32[N:4, 3, 32, 32])");
  await vscode.page.locator(".quick-input-widget .monaco-inputbox.error").waitFor({ state: "detached" });
  await vscode.page.keyboard.press("Enter");
  await vscode.lineWith("# shapelens: Net()(f32[N:4, 3, 32, 32])");
  await vscode.lineWith("x = torch.flatten(x, 1)", "→ [N, 400]");
  await vscode.save();
  assert.equal(workspace.read("recipe.py").match(/# shapelens: .*/g).join(), "# shapelens: Net()(f32[N:4, 3, 32, 32])");
});
