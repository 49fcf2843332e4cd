// The model as a whole beside the editor: opened, folded, walked through by keyboard, followed through an edit that breaks it and its fix.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { flows } from "../vscode/flow.mjs";
import { modelFrame, modelPage, row, showModel } from "../vscode/model_view.mjs";
import { notebook } from "../vscode/notebook_file.mjs";
import { axeSource, olderCodeServer, testOutput } from "../vscode/paths.mjs";
import { PATIENCE } from "../vscode/patience.mjs";
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

/** The frame of the view with the tree of Net, also where a flow before has left it in another state. */
async function opened(vscode) {
  await vscode.lineWith("return self.head", "→ [B, 10]");
  await vscode.click("self.head = nn.Linear", "head");
  const frame = await showModel(vscode);
  await frame.locator("h1", { hasText: "Net" }).waitFor();
  await frame.locator(".toolbar button", { hasText: "Tree" }).click();
  await row(frame, "head").locator("text=[B, 10]").or(frame.locator("#tree tr.message")).first().waitFor();
  return frame;
}

async function accessible(frame) {
  const page = await modelPage(frame);
  await page.evaluate(`${axeSource}; undefined`);
  const found = await page.evaluate(async () => (await window.axe.run()).violations.filter(({ impact }) => ["serious", "critical"].includes(impact)));
  assert.deepEqual(found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join("; ")}`), []);
}

flow("the code lens of a class and the icon above the editor open the view", model, async ({ vscode }) => {
  await vscode.lineWith("return self.head", "→ [B, 10]");
  await vscode.click("self.up = nn.Linear", "up");
  await vscode.lens("Show model");
  await vscode.page.locator(".codelens-decoration a", { hasText: "Show model" }).last().click();
  const frame = await modelFrame(vscode);
  await frame.locator("h1", { hasText: "Net" }).waitFor(); // Not the class at the cursor.
  await row(frame, "head").waitFor();
  await vscode.page.locator('.editor-actions [aria-label^="Show Model"], .editor-actions [aria-label*="ShapeLens: Show Model"]').first().click();
  await frame.locator("h1", { hasText: "Block" }).waitFor();
});

flow("the model is shown as a tree that folds, marks the cursor's row and leads to the line", { ...model, goesOn: true }, async ({ vscode }) => {
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
  await vscode.page.locator(".active-line-number", { hasText: /^20$/ }).first().waitFor();
  await vscode.screenshot(join(testOutput, "model-tree.png"));
});

/** The table that the view's button puts onto the clipboard. The message of an earlier copy may still stand in the status bar: it proves nothing. */
async function copied(vscode, frame) {
  await vscode.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await vscode.page.evaluate(() => navigator.clipboard.writeText(""));
  await frame.locator(".toolbar button", { hasText: "Copy as Markdown" }).click();
  const table = await eventually("a table on the clipboard", () => vscode.page.evaluate(async () => (await navigator.clipboard.readText()) || null));
  await vscode.page.locator(".statusbar-item", { hasText: "The table was copied" }).waitFor();
  return table;
}

/** Where the cursor of the editor is, as the status bar says it. */
const cursor = (vscode, line) => vscode.page.locator('[id="status.editor.selection"]', { hasText: `Ln ${line},` }).waitFor();

flow("a row's click goes to where its layer is made, a second one to where it is called", { ...model, goesOn: true }, async ({ vscode }) => {
  const frame = await opened(vscode);
  const head = row(frame, "head").locator(".value").first();
  await head.click();
  await cursor(vscode, 21);
  await head.click();
  await cursor(vscode, 26);
  await head.click();
  await cursor(vscode, 21);
});

flow("the view is beside the editor: in the secondary side bar where there is one, which can be opened by itself", { ...model, goesOn: true }, async ({ vscode }) => {
  const frame = await opened(vscode);
  const home = await vscode.page.locator(olderCodeServer ? ".part.editor" : ".part.auxiliarybar").boundingBox();
  const view = await vscode.page.locator('iframe.webview[src*="extensionId=shapelens"]').boundingBox();
  assert.ok(view.x >= home.x - 1 && view.x + view.width <= home.x + home.width + 1, JSON.stringify([view, home]));
  assert.equal(await vscode.page.locator(".editor-group-container").count(), olderCodeServer ? 2 : 1);
  await vscode.click("self.norm = nn.LayerNorm", "norm");
  await frame.locator("h1", { hasText: "Block" }).waitFor();
  await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
  await frame.locator("#blocks .box", { hasText: "norm" }).waitFor(); // Of the block alone, not of what is around it.
  assert.equal(await frame.locator("#blocks .box", { hasText: "head" }).count(), 0);
  assert.equal(await frame.locator("#blocks text.label", { hasText: "[B, T, 64]" }).first().isVisible(), true);
  await vscode.screenshot(join(testOutput, "model-part.png"));
  await frame.locator(".toolbar button", { hasText: "Tree" }).click();
  await vscode.click("# shapelens:", "shapelens"); // The directive belongs to the class below it.
  await frame.locator("h1", { hasText: "Net" }).waitFor();
  await vscode.click("self.norm = nn.LayerNorm", "norm");
  await frame.locator("h1", { hasText: "Block" }).waitFor();
  if (olderCodeServer) return;
  await vscode.command("View: Toggle Secondary Side Bar Visibility");
  await vscode.page.locator(".part.auxiliarybar").waitFor({ state: "hidden" });
  await vscode.click("self.head = nn.Linear", "head");
  await vscode.command("View: Toggle Secondary Side Bar Visibility");
  await frame.locator("h1", { hasText: "Net" }).waitFor();
});

flow("what an edit changes is compared with a state that was pinned, and the table is copied", { ...model, goesOn: true }, async ({ vscode }) => {
  const frame = await opened(vscode);
  await frame.locator("header .totals", { hasText: "training step" }).waitFor();
  await frame.locator(".toolbar button", { hasText: "Compare" }).click();
  await vscode.page.locator(".view-line", { hasText: "super" }).last().click(); // The editor is active again.
  await vscode.retype("self.head = nn.Linear(64, 10)", "10", "12");
  const head = row(frame, "head");
  await head.locator(".changed", { hasText: "was [B, 10]" }).waitFor();
  await head.locator(".changed", { hasText: "+130" }).waitFor();
  await frame.locator("header .changed", { hasText: /\+130 parameters, \+[\d.]+ KB at the peak/ }).waitFor();
  await vscode.screenshot(join(testOutput, "model-compared.png"));
  await frame.locator(".toolbar button", { hasText: "Compare" }).click();
  await head.locator(".changed").first().waitFor({ state: "detached" });
  const table = await copied(vscode, frame);
  assert.match(table, /^\|.*head.*\[B, 12\].*\|$/m);
});

flow("the memory of each module stands in the table, sorts, and is copied", { ...model, goesOn: true }, async ({ vscode }) => {
  const frame = await opened(vscode);
  await frame.locator("header .totals", { hasText: "training step" }).waitFor();
  await frame.getByLabel("Optimizer").selectOption("SGD");
  await frame.locator("header .totals", { hasText: "SGD" }).waitFor();
  await frame.locator(".toolbar button", { hasText: "Memory" }).click();
  // 650 numbers in two storages, each rounded up to 512 bytes.
  const amounts = () => row(frame, "head").locator("td.amount").allTextContents();
  await eventually("the memory of head", async () => (await amounts()).slice(0, 3).join(" ") === "3.0 KB 3.0 KB ", PATIENCE, amounts);
  await frame.getByLabel("Optimizer").selectOption("Adam");
  await eventually("the state of Adam", async () => (await amounts()).slice(0, 3).join(" ") === "3.0 KB 3.0 KB 6.0 KB", PATIENCE, amounts);
  await frame.locator("th button", { hasText: "Temporary" }).click();
  assert.equal(await frame.locator('th[aria-sort="descending"]').textContent(), "Temporary");
  // In a view that is too narrow for all columns, the names stay in sight.
  await frame.locator("main").evaluate((main) => { main.scrollLeft = main.scrollWidth; });
  const [view, name] = [await frame.locator("main").boundingBox(), await row(frame, "head").locator("td.name").boundingBox()];
  assert.ok(name.x >= view.x && name.x < view.x + 2, JSON.stringify([view, name]));
  await vscode.screenshot(join(testOutput, "model-memory.png"));
  const table = await copied(vscode, frame);
  assert.match(table, /^\| Layer \| Output \| Parameters \| Gradients \| Optimizer \|/m);
  assert.match(table, /^\|.*head.*\| 3\.0 KB \| 3\.0 KB \| 6\.0 KB \|/m);
  await frame.locator(".toolbar button", { hasText: "Memory" }).click();
  await frame.locator("th button", { hasText: "FLOPs" }).waitFor();
  assert.equal(await frame.locator('th[aria-sort="descending"]').count(), 0);
});

/** Clicks a button of the view that saves, takes the name that is proposed, and waits for that file; hands back its bytes. */
async function saved(vscode, workspace, frame, kind) {
  await frame.locator(".toolbar button", { hasText: `Save as ${kind.toUpperCase()}` }).click();
  const input = await vscode.inputBox();
  await eventually(`net.${kind} is proposed`, async () => (await input.inputValue()).endsWith(`net.${kind}`), PATIENCE, () => input.inputValue());
  await vscode.page.keyboard.press("Enter");
  const file = workspace.path(`net.${kind}`);
  return eventually(`${file} is written`, () => existsSync(file) && readFileSync(file).length > 0 && readFileSync(file));
}

flow("the model is saved as a picture and as a page, each of which opens from the disk", { ...model, goesOn: true }, async ({ vscode, workspace }) => {
  const frame = await opened(vscode);
  await frame.locator("header .totals", { hasText: "training step" }).waitFor();
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

flow("an edit that breaks the model makes its row and its box red, and the view mends it", { ...model, goesOn: true }, async ({ vscode }) => {
  const frame = await opened(vscode);
  await vscode.retype("self.head = nn.Linear(64, 10)", "64", "65");
  await frame.locator("#tree tr.message", { hasText: "in_features" }).waitFor();
  await row(frame, "blocks").waitFor();
  await vscode.screenshot(join(testOutput, "model-broken.png"));
  await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
  await frame.locator("#blocks .box.failed", { hasText: "head" }).waitFor();
  await frame.locator("#blocks .box", { hasText: "×12" }).waitFor();
  const message = frame.locator("#blocks p.message", { hasText: "in_features" });
  await vscode.screenshot(join(testOutput, "model-broken-blocks.png"));
  await message.locator("button").click();
  await vscode.page.locator(".view-line", { hasText: /nn\.Linear\(64,.10\)/ }).first().waitFor();
  await message.waitFor({ state: "detached" });
});

for (const [theme, kind] of [["Default Light Modern", "vscode-light"], ["Default High Contrast", "vscode-high-contrast"]]) {
  flow(`the view in ${theme} has nothing that keeps a reader out`, { ...model, goesOn: true, settings: { "workbench.colorTheme": theme } }, async ({ vscode }) => {
    const frame = await opened(vscode);
    await frame.locator(`body.${kind}`).waitFor();
    await accessible(frame);
    await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
    await frame.locator("#blocks .box").first().waitFor();
    await accessible(frame);
  });
}

flow("blocks show the residual paths, in a dark theme too", { ...model, goesOn: true, settings: { "workbench.colorTheme": "Default Dark Modern" } }, async ({ vscode }) => {
  const frame = await opened(vscode);
  await frame.locator("body.vscode-dark").waitFor();
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

/** Presses a key until what the page of the view has at the keyboard fits `selector`. */
async function pressUntil(vscode, frame, key, selector) {
  for (let times = 0; times < 40; times += 1) {
    if (await frame.locator(`${selector}:focus`).count()) return;
    await vscode.page.keyboard.press(key);
  }
  assert.fail(`${key} does not lead to ${selector}, but to ${await frame.locator(":focus").evaluateAll((all) => all.map((each) => each.outerHTML.slice(0, 200)).join())}`);
}

/** Runs a command without the mouse. */
async function typedCommand(vscode, title) {
  const { keyboard } = vscode.page;
  await vscode.inputBox("F1");
  await keyboard.type(title);
  await vscode.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: title }).waitFor();
  await keyboard.press("Enter");
}

const BROKEN = NET.replace("nn.Linear(64, 10)", "nn.Linear(65, 10)");

flow("the keyboard is enough: open, move, fold, sort, search, go to a line, mend", { open: "net.py", files: { "net.py": BROKEN } }, async ({ vscode }) => {
  const { keyboard } = vscode.page;
  await vscode.lineWith("return self.head", "→ [B, 10]");
  await keyboard.press("Control+1");
  await vscode.inputBox("Control+g");
  await keyboard.type("21");
  await keyboard.press("Enter");
  await cursor(vscode, 21);
  await typedCommand(vscode, "ShapeLens: Show Model");
  const frame = await modelFrame(vscode);
  await row(frame, "head").waitFor();
  await typedCommand(vscode, olderCodeServer ? "View: Focus Next Editor Group" : "Focus on Model View");
  const focused = (text) => frame.locator("#tree tr[data-id]:focus", { hasText: text }).waitFor();
  await focused("Net");
  await keyboard.press("ArrowDown");
  await focused("blocks");
  await keyboard.press("ArrowRight");
  await keyboard.press("ArrowDown");
  await focused("×12");
  await keyboard.press("ArrowRight");
  await row(frame, "10 Block").waitFor();
  await keyboard.press("ArrowLeft");
  await row(frame, "10 Block").waitFor({ state: "detached" });
  await pressUntil(vscode, frame, "Shift+Tab", 'th button:text-is("Parameters")');
  await keyboard.press("Enter");
  await frame.locator('th[aria-sort="descending"] button:text-is("Parameters"):focus').waitFor();
  await pressUntil(vscode, frame, "Shift+Tab", 'input[type="search"]');
  await keyboard.type("head");
  await row(frame, "×12").waitFor({ state: "detached" });
  await keyboard.press("ArrowDown");
  await focused("Net");
  await keyboard.press("End");
  await focused("head");
  await keyboard.press("Shift+Enter");
  await cursor(vscode, 26);
  await keyboard.press("Enter");
  await cursor(vscode, 21);
  await keyboard.press("Tab");
  await frame.locator("#tree button.fix:focus").waitFor();
  await vscode.screenshot(join(testOutput, "model-keyboard.png"));
  await keyboard.press("Enter");
  await vscode.lineWith("nn.Linear(64, 10)");
  await frame.locator("#tree tr.message").waitFor({ state: "detached" });
  await focused("head");
  await vscode.focusEditor();
  await keyboard.press("Escape");
  await keyboard.press("End");
  await keyboard.type("  # mended");
  await vscode.lineWith("nn.Linear(64, 10)  # mended");
});

const PYRAMID = `import torch
from torch import nn


# shapelens: Pyramid()(f32[B:2, 3, 128, 128])
class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.down = nn.Conv2d(16, 256, 3, stride=4, padding=1)
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU()) for _ in range(4)])
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        x = self.blocks(self.down(self.stem(x)))
        return self.head(x.mean((2, 3)))
`;

flow("the picture is drawn to scale, folded, moved and made larger", { open: "pyramid.py", files: { "pyramid.py": PYRAMID } }, async ({ vscode }) => {
  const { mouse, keyboard } = vscode.page;
  await vscode.lineWith("return self.head", "→ [B, 10]");
  await vscode.click("self.head = nn.Linear", "head");
  const frame = await showModel(vscode);
  await frame.locator("header .totals", { hasText: "training step" }).waitFor();
  await frame.locator(".toolbar button", { hasText: "Blocks" }).click();
  const box = (text) => frame.locator("#blocks .box", { hasText: text }).last();
  const size = async (text) => box(text).locator("rect").first().evaluate((rect) => ["width", "height"].map((name) => Number(rect.getAttribute(name))));
  await box("stem").waitFor();
  assert.equal((await size("stem"))[1], (await size("down"))[1]); // Without a scale all are as high.
  await frame.locator(".toolbar button", { hasText: "To scale" }).click();
  await frame.locator('.toolbar button[aria-pressed="true"]', { hasText: "To scale" }).waitFor();
  const [stem, down] = [await size("stem"), await size("down")];
  assert.ok(Math.abs(stem[0] / down[0] - 4) < 0.01, `128 pixels beside 32: ${stem[0]}, ${down[0]}`);
  assert.ok(down[1] > 1.5 * stem[1], `256 channels beside 16: ${down[1]}, ${stem[1]}`);
  await vscode.screenshot(join(testOutput, "model-to-scale.png"));
  const parts = () => frame.locator("#blocks .box").count();
  const folded = await parts();
  const group = frame.locator("#blocks .box", { hasText: "×4" });
  await box("blocks").click();
  await group.waitFor();
  await group.click();
  await frame.locator('#blocks .box[aria-expanded="true"]', { hasText: "×4" }).waitFor();
  assert.ok((await parts()) >= folded + 5, `${await parts()} boxes, ${folded} before`);
  await frame.locator('#blocks .box[aria-expanded="true"]', { hasText: "blocks" }).locator("text").click();
  await group.waitFor({ state: "detached" });
  assert.equal(await parts(), folded);
  const seen = async () => (await frame.locator("#blocks svg").getAttribute("viewBox")).split(" ").map(Number);
  const after = async (what, act, fits) => {
    const before = await seen();
    await act();
    await eventually(`${what} changes what is seen`, async () => fits(await seen(), before), PATIENCE, async () => `${before} → ${await seen()}`);
  };
  const smaller = (now, before) => now[2] < before[2] && now[3] < before[3];
  const larger = (now, before) => now[2] > before[2] && now[3] > before[3];
  await frame.locator(".toolbar button", { hasText: "Fit" }).click();
  const fitted = await seen();
  await after("+", () => frame.getByRole("button", { name: "Zoom in" }).click(), smaller);
  await after("−", () => frame.getByRole("button", { name: "Zoom out" }).click(), larger);
  const room = await frame.locator("#blocks svg").boundingBox();
  const [x, y] = [room.x + 8, room.y + room.height - 8]; // Beside the boxes.
  await mouse.move(x, y);
  await after("the wheel", () => mouse.wheel(0, 120), (now, before) => now[1] > before[1] && now[2] === before[2]);
  await keyboard.down("Control");
  await after("the wheel with Ctrl", () => mouse.wheel(0, -120), smaller);
  await keyboard.up("Control");
  const dragged = async () => {
    await mouse.move(x, y);
    await mouse.down();
    await mouse.move(x + 60, y - 90, { steps: 4 });
    await mouse.up();
  };
  await after("dragging", dragged, (now, before) => now[0] < before[0] && now[1] > before[1] && now[2] === before[2]);
  await frame.locator("#blocks svg").focus();
  await after("the key ↓", () => keyboard.press("ArrowDown"), (now, before) => now[1] > before[1] && now[0] === before[0]);
  await after("the key +", () => keyboard.press("+"), smaller);
  await frame.locator(".toolbar button", { hasText: "Fit" }).click();
  assert.deepEqual(await seen(), fitted);
});

flow("the memory follows the size of a dim, and one of two examples is chosen", { open: "net.py", files: { "net.py": NET.replace("# shapelens: Net()(f32[B:2, T:16, 64])", "# shapelens: Net()(f32[B:2, T:16, 64])\n# shapelens: Net()(f32[B:3, 64, 64])") } }, async ({ vscode }) => {
  const frame = await opened(vscode);
  const totals = frame.locator("header .totals");
  await totals.locator("text=training step").waitFor();
  const slider = frame.getByLabel("Size of B, slider");
  await slider.hover(); // The first answer takes its time, and is asked for before the slider moves.
  await totals.locator("text=/largest B that fits 24 GB: [1-9]/").waitFor();
  await slider.focus();
  const before = await totals.textContent();
  await vscode.page.keyboard.press("End");
  await frame.locator("header .totals:not(:text-is(" + JSON.stringify(before) + "))").waitFor();
  await frame.locator(".toolbar button", { hasText: "Numbers" }).click();
  await row(frame, "head").locator("text=[65536, 10]").waitFor();
  await vscode.screenshot(join(testOutput, "model-sizes.png"));
  await frame.getByLabel("Example").selectOption({ index: 1 });
  await row(frame, "head").locator("text=[3, 10]").waitFor();
});

const CELLS = notebook("import torch\nfrom torch import nn", NET.slice(NET.indexOf("class Block")), "net = Net()");

flow("a class in a notebook is shown, and a row leads to its cell", { files: { "net.ipynb": CELLS } }, async ({ vscode }) => {
  await vscode.openNotebook("net.ipynb");
  await vscode.lineWith("return self.head", "→ [B, 10]");
  await vscode.click("self.head = nn.Linear", "head");
  const frame = await showModel(vscode);
  const head = frame.locator("#tree tr.at-cursor", { hasText: "head" });
  // A cell that grows while it is clicked on has the cursor on another line.
  await head.waitFor({ timeout: PATIENCE / 4 }).catch(() => vscode.click("self.head = nn.Linear", "head"));
  await head.waitFor();
  await row(frame, "blocks").focus();
  await vscode.page.keyboard.press("Enter");
  await frame.locator("#tree tr.at-cursor", { hasText: "blocks" }).waitFor();
  await vscode.screenshot(join(testOutput, "model-notebook.png"));
});
