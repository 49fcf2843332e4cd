// A training script: what its statements hold, and a loss that no longer fits while it is typed.
import { flows } from "../vscode/flow.mjs";

const flow = flows();

const SCRIPT = `import torch
import torch.nn.functional as F
from torch import nn

model = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(256, 20)
labels = torch.randint(0, 2, (256,)).float()

for epoch in range(5):
    for start in range(0, 256, 64):
        xb = inputs[start : start + 64]
        yb = labels[start : start + 64]
        logits = model(xb).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
`;

const training = { open: "train.py", files: { "train.py": SCRIPT } };

flow("a training script shows its shapes, and its loss is underlined when it no longer fits", training, async ({ vscode }) => {
  await vscode.lineWith("inputs = torch.randn(256, 20)", "→ [256, 20]");
  await vscode.lineWith("xb = inputs", "→ [64, 20]");
  await vscode.lineWith("logits = model(xb)", "→ [64]");
  await vscode.page.locator(".codelens-decoration", { hasText: "as a program" }).first().waitFor();
  await vscode.squiggles(0);
  await vscode.retype("logits = model(xb).squeeze(1)", "squeeze", "unsqueeze");
  await vscode.squiggles(1);
  await vscode.problems("need to have the same shape");
  await vscode.click("logits = model(xb)", "logits");
  await vscode.retype("logits = model(xb).unsqueeze(1)", "unsqueeze", "squeeze");
  await vscode.squiggles(0);
  await vscode.lineWith("logits = model(xb)", "→ [64]");
});
