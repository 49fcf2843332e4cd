// The model as a whole beside the editor: opened, folded, walked through by keyboard, followed through an edit that breaks it and its fix.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { flows } from "../vscode/flow.mjs";
import { notebook } from "../vscode/notebook_file.mjs";
import { axeSource, olderCodeServer, testOutput } from "../vscode/paths.mjs";
import { eventually } from "../vscode/workbench.mjs";

const flow = flows();

const NET = `import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


# shapelens: Net()(f32[B:2, T:16, 64])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(64) for _ in range(12)])
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))
`;
const model = { open: "net.py", files: { "net.py": NET } };

/** The frame of the view, once it shows a model. */
async function shown(vscode) {
  const frame = vscode.page.frameLocator("iframe.webview[src*=\"extensionId=shapelens\"]").frameLocator("iframe");
  await frame.locator("#tree, #blocks").first().waitFor({ timeout: 60_000 });
  return frame;
}

async function opened(vscode) {
  await vscode.lineWith("return self.head", "→ [B, 10]");
  await vscode.click("self.head = nn.Linear", "head");
  await vscode.command("ShapeLens: Show Model");
  return shown(vscode);
}

const row = (frame, text) => frame.locator("#tree tbody tr[data-id]", { hasText: text });

async function accessible(frame) {
  const page = await (await frame.locator("body").elementHandle()).ownerFrame();
  await page.evaluate(`${axeSource}; undefined`);
  const found = await page.evaluate(async () => (await window.axe.run()).violations.filter(({ impact }) => ["serious", "critical"].includes(impact)));
  assert.deepEqual(found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("; ")}`), []);
}

flow("the model is shown as a tree that folds, marks the cursor's row and leads to the line", model, async ({ vscode }) => {
  const frame = await opened(vscode);
  await row(frame, "head").locator("text=[B, 10]").waitFor();
  await frame.locator("#tree tr.at-cursor", { hasText: "head" }).waitFor();
  await row(frame, "blocks").locator(".fold").click();
  const group = row(frame, "×12");
  await group.waitFor();
  await group.focus();
  await vscode.page.keyboard.press("ArrowRight");
  await row(frame, "10 Block").waitFor();
  await row(frame, "10 Block").focus();
  await vscode.page.keyboard.press("Enter");
  await vscode.page.locator(".active-line-number", { hasText: /^20$/ }).first().waitFor({ timeout: 10_000 });
  await vscode.screenshot(join(testOutput, "model-tree.png"));
});

flow("an edit that breaks the model makes its row and its box red, and the view mends it", model, async ({ vscode }) => {
  const frame = await opened(vscode);
  await vscode.retype("self.head = nn.Linear(64, 10)", "64", "65");
  await frame.locator("#tree tr.message", { hasText: "in_features" }).waitFor({ timeout: 60_000 });
  await row(frame, "blocks").waitFor();
  await vscode.screenshot(join(testOutput, "model-broken.png"));
  await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
  await frame.locator("#blocks .box.failed", { hasText: "head" }).waitFor();
  await frame.locator("#blocks .box", { hasText: "×12" }).waitFor();
  const message = frame.locator("#blocks p.message", { hasText: "in_features" });
  await vscode.screenshot(join(testOutput, "model-broken-blocks.png"));
  await message.locator("button").click();
  await vscode.page.locator(".view-line", { hasText: /nn\.Linear\(64,.10\)/ }).first().waitFor({ timeout: 60_000 });
  await message.waitFor({ state: "detached", timeout: 60_000 });
});

flow("the memory follows the size of a dim, and one of two examples is chosen", { open: "net.py", files: { "net.py": NET.replace("# shapelens: Net()(f32[B:2, T:16, 64])", "# shapelens: Net()(f32[B:2, T:16, 64])\n# shapelens: Net()(f32[B:3, 64, 64])") } }, async ({ vscode }) => {
  const frame = await opened(vscode);
  const totals = frame.locator("header .totals");
  await totals.locator("text=training step").waitFor({ timeout: 60_000 });
  const slider = frame.getByLabel("Size of B, slider");
  await slider.focus();
  await totals.locator("text=/largest B that fits 24 GB: [1-9]/").waitFor({ timeout: 60_000 });
  const before = await totals.textContent();
  await vscode.page.keyboard.press("End");
  await frame.locator("header .totals:not(:text-is(" + JSON.stringify(before) + "))").waitFor({ timeout: 60_000 });
  await frame.locator(".toolbar button", { hasText: "Numbers" }).click();
  await row(frame, "head").locator("text=[65536, 10]").waitFor({ timeout: 60_000 });
  await vscode.screenshot(join(testOutput, "model-sizes.png"));
  await frame.getByLabel("Example").selectOption({ index: 1 });
  await row(frame, "head").locator("text=[3, 10]").waitFor({ timeout: 60_000 });
});

flow("what an edit changes is compared with a state that was pinned, and the table is copied", model, async ({ vscode }) => {
  await vscode.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const frame = await opened(vscode);
  await frame.locator("header .totals", { hasText: "training step" }).waitFor({ timeout: 60_000 });
  await frame.locator(".toolbar button", { hasText: "Compare" }).click();
  await vscode.page.locator(".view-line", { hasText: "super" }).last().click(); // The editor is active again.
  await vscode.retype("self.head = nn.Linear(64, 10)", "10", "12");
  const head = row(frame, "head");
  await head.locator(".changed", { hasText: "was [B, 10]" }).waitFor({ timeout: 60_000 });
  await head.locator(".changed", { hasText: "+130" }).waitFor();
  await frame.locator("header .changed", { hasText: "+130 parameters" }).waitFor();
  await vscode.screenshot(join(testOutput, "model-compared.png"));
  await frame.locator(".toolbar button", { hasText: "Compare" }).click();
  await head.locator(".changed").first().waitFor({ state: "detached" });
  await frame.locator(".toolbar button", { hasText: "Copy as Markdown" }).click();
  await vscode.page.locator(".statusbar-item", { hasText: "The table was copied" }).waitFor({ timeout: 30_000 });
  const copied = await vscode.page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /^\|.*head.*\[B, 12\].*\|$/m);
});

/** Clicks a button of the view that saves, takes the name that is proposed, and waits for that file; hands back its bytes. */
async function saved(vscode, workspace, frame, kind) {
  await frame.locator(".toolbar button", { hasText: `Save as ${kind.toUpperCase()}` }).click();
  const input = await vscode.inputBox();
  await eventually(`net.${kind} is proposed`, async () => (await input.inputValue()).endsWith(`net.${kind}`), 20_000, () => input.inputValue());
  await vscode.page.keyboard.press("Enter");
  const file = workspace.path(`net.${kind}`);
  return eventually(`${file} is written`, () => existsSync(file) && readFileSync(file).length > 0 && readFileSync(file), 20_000);
}

flow("the model is saved as a picture and as a page, each of which opens from the disk", model, async ({ vscode, workspace }) => {
  const frame = await opened(vscode);
  await frame.locator("header .totals", { hasText: "training step" }).waitFor({ timeout: 60_000 });
  await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
  await frame.locator("#blocks .box", { hasText: "×12" }).waitFor();
  const svg = (await saved(vscode, workspace, frame, "svg")).toString();
  assert.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  const png = await saved(vscode, workspace, frame, "png");
  assert.deepEqual([...png.subarray(0, 8)], [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  await saved(vscode, workspace, frame, "html");
  const page = await vscode.page.context().newPage();
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  const open = (name) => page.goto(pathToFileURL(workspace.path(name)).href);
  await open("net.svg");
  const words = await page.locator("text").allTextContents();
  for (const expected of ["0 Block ×12", "[B, T, 64]", "head Linear", "[B, 10]"]) assert.ok(words.includes(expected), `${expected} in ${words}`);
  assert.equal(await page.locator("rect").first().evaluate((box) => box.getBoundingClientRect().width > 20 && box.getAttribute("fill") !== ""), true);
  await page.screenshot({ path: join(testOutput, "model-saved-svg.png") });
  await open("net.png");
  const [width, height] = await page.locator("img").evaluate((image) => [image.naturalWidth, image.naturalHeight]);
  assert.ok(width > 200 && height > 400, `${width} × ${height}`);
  await page.screenshot({ path: join(testOutput, "model-saved-png.png") });
  requests.length = 0;
  await open("net.html");
  await page.locator("#tree tbody tr[data-id]", { hasText: "head" }).locator("text=[B, 10]").waitFor();
  await page.locator("header .totals", { hasText: "training step" }).waitFor();
  assert.deepEqual(requests, [pathToFileURL(workspace.path("net.html")).href]);
  await page.screenshot({ path: join(testOutput, "model-saved-html.png") });
  await page.close();
});

flow("the view is beside the editor: in the secondary side bar where there is one, which can be opened by itself", model, async ({ vscode }) => {
  const frame = await opened(vscode);
  const home = await vscode.page.locator(olderCodeServer ? ".part.editor" : ".part.auxiliarybar").boundingBox();
  const view = await vscode.page.locator('iframe.webview[src*="extensionId=shapelens"]').boundingBox();
  assert.ok(view.x >= home.x - 1 && view.x + view.width <= home.x + home.width + 1, JSON.stringify([view, home]));
  assert.equal(await vscode.page.locator(".editor-group-container").count(), olderCodeServer ? 2 : 1);
  await vscode.click("self.norm = nn.LayerNorm", "norm");
  await frame.locator("h1", { hasText: "Block" }).waitFor({ timeout: 60_000 });
  if (olderCodeServer) return;
  await vscode.command("View: Toggle Secondary Side Bar Visibility");
  await vscode.page.locator(".part.auxiliarybar").waitFor({ state: "hidden" });
  await vscode.click("self.head = nn.Linear", "head");
  await vscode.command("View: Toggle Secondary Side Bar Visibility");
  await frame.locator("h1", { hasText: "Net" }).waitFor({ timeout: 60_000 });
});

flow("blocks show the residual paths, in a dark theme too", { ...model, settings: { "workbench.colorTheme": "Default Dark Modern" } }, async ({ vscode }) => {
  const frame = await opened(vscode);
  await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
  await frame.locator("#blocks .box", { hasText: "×12" }).waitFor();
  await frame.locator("#blocks .box", { hasText: "×12" }).focus();
  await vscode.page.keyboard.press("Enter");
  await frame.locator("#blocks .box", { hasText: "10 Block" }).waitFor();
  await frame.locator('#blocks .box[aria-expanded="false"]').first().focus();
  await vscode.page.keyboard.press("Enter");
  await frame.locator("#blocks path.edge").first().waitFor();
  await vscode.screenshot(join(testOutput, "model-blocks.png"));
});

for (const theme of ["Default Light Modern", "Default High Contrast"]) {
  flow(`the view in ${theme} has nothing that keeps a reader out`, { ...model, settings: { "workbench.colorTheme": theme } }, async ({ vscode }) => {
    const frame = await opened(vscode);
    await accessible(frame);
    await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
    await frame.locator("#blocks .box").first().waitFor();
    await accessible(frame);
  });
}

const CELLS = notebook("import torch\nfrom torch import nn", NET.slice(NET.indexOf("class Block")), "net = Net()");

flow("a class in a notebook is shown, and a row leads to its cell", { files: { "net.ipynb": CELLS } }, async ({ vscode }) => {
  await vscode.openNotebook("net.ipynb");
  await vscode.lineWith("return self.head", "→ [B, 10]");
  await vscode.click("self.head = nn.Linear", "head");
  await vscode.command("ShapeLens: Show Model");
  const frame = await shown(vscode);
  await frame.locator("#tree tr.at-cursor", { hasText: "head" }).waitFor({ timeout: 60_000 });
  await row(frame, "blocks").focus();
  await vscode.page.keyboard.press("Enter");
  await frame.locator("#tree tr.at-cursor", { hasText: "blocks" }).waitFor({ timeout: 30_000 });
  await vscode.screenshot(join(testOutput, "model-notebook.png"));
});
