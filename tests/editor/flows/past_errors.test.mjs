// Several mistakes at once, what depends on data, and files that are parts of others.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { flows } from "../vscode/flow.mjs";
import { repository } from "../vscode/paths.mjs";

const flow = flows();

/** The text of a fixture without what is expected of it. */
function fixture(name) {
  return readFileSync(join(repository, "fixtures", name), "utf8").replaceAll(/[ \t]*#[>!?] .*$/gm, "");
}

const mistakes = { open: "three_mistakes.py", files: { "three_mistakes.py": fixture("past_errors/three_mistakes.py") } };

flow("three mistakes are three squiggles, and three quick fixes mend them", mistakes, async ({ vscode }) => {
  await vscode.lineWith("return self.out(F.relu(x))", "→ [B, 10]");
  await vscode.squiggles(3);
  const mend = async (code, text, title, left) => {
    await vscode.quickFixes(code, text, title);
    await vscode.page.keyboard.press("Enter");
    await vscode.squiggles(left);
  };
  await mend("nn.Conv2d(1, 6, 5)", "1", "Change in_channels to 3", 2);
  await mend("nn.BatchNorm2d(8)", "8", "Change num_features to 6", 1);
  await mend("nn.Linear(400, 120)", "400", "Change in_features to 1176", 0);
  await vscode.lineWith("self.fc = nn.Linear(1176, 120)", "→ [B, 120]");
});

const masks = { open: "sizes.py", files: { "sizes.py": fixture("unknown/sizes.py") } };

flow("sizes that depend on data are question marks", masks, async ({ vscode }) => {
  await vscode.lineWith("chosen = x[mask]", "→ [?, 8]");
  await vscode.lineWith("self.fc = nn.Linear(8, 3)", "→ [?, 3]");
  await vscode.squiggles(0);
});

const parts = { open: "blocks.py", files: { "blocks.py": fixture("two_files/blocks.py"), "net.py": fixture("two_files/net.py") } };

flow("a file of layers is seen from the model that imports it", parts, async ({ vscode }) => {
  const line = (await vscode.lines()).find((text) => text.includes("def forward"));
  await vscode.lineWith(line.trim().split(":")[0], "[B");
  await vscode.lens("part of");
});
