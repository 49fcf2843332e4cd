// A notebook in VS Code's own notebook editor: shapes in every cell, and what happens to them when cells change.
import { flows } from "../vscode/flow.mjs";
import { notebook } from "../vscode/notebook_file.mjs";

const flow = flows();

const IMPORTS = "%matplotlib inline\nimport torch\nfrom torch import nn";
const NET = `class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 5)
        self.head = nn.Linear(16 * 6 * 6, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv(x), 2)
        return self.head(x.flatten(1))`;
const USE = "net = Net()\nimages = torch.rand(8, 3, 16, 16)\nscores = net(images)";


flow("each cell of a notebook shows its shapes, also while it is typed in", { files: { "net.ipynb": notebook(IMPORTS, NET, USE) } }, async ({ vscode }) => {
  await vscode.openNotebook("net.ipynb");
  await vscode.lineWith("self.conv = nn.Conv2d", "→ [B, 16, 12, 12]");
  await vscode.lineWith("images = torch.rand", "→ [8, 3, 16, 16]");
  await vscode.lineWith("scores = net(images)", "→ [8, 10]");
  await vscode.lens("from cell 3, line 3");
  await vscode.squiggles(0);
  await vscode.hover("max_pool2d(self.conv(x)", "conv", "parameters");
  await vscode.leaveHover();
  await vscode.retype("images = torch.rand", "8", "32");
  await vscode.lineWith("scores = net(images)", "→ [32, 10]");
});

flow("a wrong number in a cell is underlined, and its fix changes that cell", { files: { "wrong.ipynb": notebook(IMPORTS, NET.replace("16 * 6 * 6", "16 * 5 * 5"), USE) } }, async ({ vscode, workspace }) => {
  await vscode.openNotebook("wrong.ipynb");
  await vscode.squiggles(1);
  await vscode.problems("but in_features is 400");
  await vscode.quickFixes("self.head = nn.Linear", "16 * 5 * 5", "16 * 6 * 6");
  await vscode.page.keyboard.press("Enter");
  await vscode.squiggles(0);
  await vscode.lineWith("self.head = nn.Linear(16 * 6 * 6, 10)", "→ [B, 10]");
  await vscode.lineWith("scores = net(images)", "→ [8, 10]");
  await vscode.save();
  if (!workspace.read("wrong.ipynb").includes("nn.Linear(16 * 6 * 6, 10)")) throw new Error("the fix is not in the file");
});

const CELLS = ["import torch", "x = torch.rand(4, 3)", "y = (x.T)"];

flow("cells that are added, moved, deleted, broken, or magic", { files: { "cells.ipynb": notebook(...CELLS) } }, async ({ vscode }) => {
  await vscode.openNotebook("cells.ipynb");
  await vscode.lineWith("y = (x.T)", "→ [3, 4]");
  // One above, with a magic.
  await vscode.click("x = torch.rand", "x");
  await vscode.command("Notebook: Insert Code Cell Above");
  await vscode.page.keyboard.type("%time w = torch.rand(3, 5)");
  await vscode.lineWith("%time w = torch.rand", "→ [3, 5]");
  await vscode.retype("y = (x.T)", "x.T", "x @ w");
  await vscode.lineWith("y = (x @ w)", "→ [4, 5]");
  // It is wanted above where it goes.
  await vscode.click("%time w", "w");
  await vscode.command("Notebook: Move Cell Down");
  await vscode.lineWith("y = (x @ w)", "→ [4, 5]");
  await vscode.squiggles(0);
  await vscode.command("Notebook: Move Cell Down");
  await vscode.lineWith("%time w = torch.rand", "→ [3, 5]");
  await vscode.command("Notebook: Move Cell Up");
  await vscode.lineWith("y = (x @ w)", "→ [4, 5]");
  // A mistake, and its cell deleted.
  await vscode.click("y = (x @ w)", "y");
  await vscode.command("Notebook: Insert Code Cell Below");
  await vscode.page.keyboard.type("z = y @ w");
  await vscode.squiggles(1);
  await vscode.problems("the inner sizes are 5 and 3");
  await vscode.click("z = y @ w", "z");
  await vscode.command("Notebook: Delete Cell");
  await vscode.squiggles(0);
  // A cell that is broken and left so ends alone.
  await vscode.click("y = (x @ w)", "y");
  await vscode.command("Notebook: Insert Code Cell Above");
  await vscode.page.keyboard.type("x = torch.rand(");
  await vscode.retype("%time w = torch.rand", "5", "7");
  await vscode.lineWith("%time w = torch.rand", "→ [3, 7]");
  await vscode.squiggles(1); // The editor has closed the parenthesis.
  await vscode.problems("rand() needs arguments");
});
