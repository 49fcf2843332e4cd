// A file that says nothing of how its model is called: shapes are there all the same, for an example that can be seen, chosen, changed and kept.
import assert from "node:assert/strict";
import { join } from "node:path";
import { flows } from "../vscode/flow.mjs";
import { testOutput } from "../vscode/paths.mjs";
import { recipe } from "../vscode/workspace.mjs";

const flow = flows();
const PLAIN = recipe("recipe.py").replace(/^# shapelens:.*\n/m, "");
const TWO_SIZES = `import torch
from torch import nn


class Stem(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def test_small():
    assert Stem()(torch.randn(2, 3, 16, 16)).shape == (2, 8, 16, 16)


def test_large():
    assert Stem()(torch.randn(2, 3, 48, 48)).shape == (2, 8, 48, 48)
`;

flow("one click writes the example that was found down", { open: "plain.py", files: { "plain.py": PLAIN } }, async ({ vscode }) => {
  await vscode.lineWith("x = torch.flatten(x, 1)", "→ [B, 400]");
  await vscode.chooseFromLens("guessed input", "Write as directive");
  await vscode.lineWith("# shapelens: Net()(f32[B:2, 3, 32, 32])");
  await vscode.lens("· given");
});

flow("a file without a directive has its shapes, and the lens says what they are shown for", { open: "plain.py", files: { "plain.py": PLAIN }, goesOn: true }, async ({ vscode, workspace }) => {
  await vscode.lineWith("x = torch.flatten(x, 1)", "→ [B, 400]");
  await vscode.lineWith("self.conv1 = nn.Conv2d(3, 6, 5)", "→ [B, 6, 28, 28]");
  await vscode.squiggles(0);
  const lens = await vscode.lens("guessed input");
  assert.match(await lens.textContent(), /^Net · x f32\[B, 3, 32, 32\] · guessed input · 62\s006 parameters$/);

  await vscode.chooseFromLens("guessed input", "Set example input");
  const input = await vscode.inputBox();
  assert.equal(await input.inputValue(), "Net()(f32[B:2, 3, 32, 32])");
  const message = (text) => vscode.page.locator(".quick-input-widget .quick-input-message:visible", { hasText: text }).waitFor();
  await input.fill("Net()(f32[N:4, 1, 32, 32])");
  await message("expected input");
  await input.fill("Net()(f32[N:4, 3, 32, 32])");
  await message("→ [4, 10]");
  await vscode.page.keyboard.press("Enter");
  await vscode.lineWith("# shapelens: Net()(f32[N:4, 3, 32, 32])");
  await vscode.lineWith("x = torch.flatten(x, 1)", "→ [N, 400]");
  await vscode.lens("· given");
  await vscode.save();
  assert.match(workspace.read("plain.py"), /\n# shapelens: Net\(\)\(f32\[N:4, 3, 32, 32\]\)\nclass Net/);
});

flow("another of the examples that were found is chosen", { open: "stem.py", files: { "stem.py": TWO_SIZES } }, async ({ vscode, workspace }) => {
  await vscode.lineWith("return self.conv(x)", "→ [B, 8, 16, 16]");
  await vscode.chooseFromLens("from test_small(), line 15", "Choose another example");
  const row = vscode.page.locator(".quick-input-list .monaco-list-row", { hasText: "from test_large()" }).first();
  await row.waitFor();
  await vscode.screenshot(join(testOutput, "choosing-an-example.png"));
  await row.click({ position: { x: 40, y: 8 } }); // A tooltip lies over the middle.
  await vscode.lineWith("return self.conv(x)", "→ [B, 8, 48, 48]");
  await vscode.lens("from test_large()");
  assert.equal(workspace.read("stem.py"), TWO_SIZES);
});
