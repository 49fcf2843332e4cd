// The pictures of the READMEs, taken from the real editor: vscode-extension/images/*.png.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openBrowser } from "./vscode/browser.mjs";
import { CodeServer } from "./vscode/code_server.mjs";
import { notebook } from "./vscode/notebook_file.mjs";
import { pythonWithTorch, repository, testOutput, vsix } from "./vscode/paths.mjs";
import { Workbench } from "./vscode/workbench.mjs";
import { Workspace } from "./vscode/workspace.mjs";

const IMAGES = join(repository, "vscode-extension", "images");
const SIDE = 20; // CSS pixels beside what is shown
const ABOVE = 3; // CSS pixels above and below it: more would cut into the next line
const SETTINGS = {
  "editor.fontSize": 14,
  "editor.lineHeight": 22,
  "breadcrumbs.enabled": false,
  "editor.renderLineHighlight": "none",
  "editor.occurrencesHighlight": "off",
  "editor.matchBrackets": "never",
  "editor.selectionHighlight": false,
  "editor.guides.indentation": false,
  "editor.lightbulb.enabled": "off",
  "editor.scrollBeyondLastLine": false,
  "editor.scrollbar.horizontal": "hidden",
  "editor.stickyScroll.enabled": false,
  "editor.hover.above": false,
  "editor.overviewRulerBorder": false,
  "editor.hideCursorInOverviewRuler": true,
};

/** The box (CSS pixels) that holds all of `boxes`, with a margin. */
function around(boxes) {
  const left = Math.min(...boxes.map((box) => box.x)) - SIDE;
  const top = Math.min(...boxes.map((box) => box.y)) - ABOVE;
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + SIDE;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + ABOVE;
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/** The boxes of the lines from the one with `first` to the one with `last`, line numbers included. */
async function linesBox(vscode, first, last) {
  await vscode.lineWith(first);
  await vscode.lineWith(last);
  const lines = await vscode.lines();
  const from = lines.findIndex((line) => line.includes(first));
  const shown = lines.slice(from, 1 + lines.findIndex((line, index) => index >= from && line.includes(last))).filter((line) => line.trim());
  const boxes = await Promise.all(shown.map((line) => vscode.box(line.trim())));
  const gutter = await vscode.page.locator(".editor-group-container.active .margin").first().boundingBox();
  return [...boxes, { x: gutter.x + SIDE, y: boxes[0].y, width: 1, height: 1 }];
}

async function open(browser, codeServer, workspace, name) {
  const vscode = await Workbench.open(browser, codeServer.url(workspace.folder, workspace.path(name)), name);
  // VS Code remembers it for the next picture.
  if (await vscode.page.locator(".part.sidebar").isVisible()) await vscode.command("View: Close Primary Side Bar");
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  await vscode.lens("parameters");
  for (const [part, key] of [["panel", "Control+j"], ["auxiliarybar", "Control+Alt+b"]]) {
    const shown = vscode.page.locator(`.part.${part}`);
    if (!(await shown.isVisible())) continue;
    await vscode.page.keyboard.press(key);
    await shown.waitFor({ state: "hidden" });
  }
  return vscode;
}

async function take(vscode, name, boxes) {
  await sleep(600); // The editor's own fades and the blinking cursor have no event to wait for.
  await vscode.screenshot(join(IMAGES, name), { clip: around(boxes), animations: "disabled", caret: "hide" });
  console.log(`vscode-extension/images/${name}`);
}

async function hints(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "recipe.py");
  await take(vscode, "hints.png", await linesBox(vscode, "# shapelens:", "return x"));
  await vscode.page.close();
}

async function hover(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "recipe.py");
  await vscode.hover("x = F.relu(self.fc1", "fc1", "parameters");
  const shown = await vscode.page.locator(".monaco-hover:visible").first().boundingBox();
  await take(vscode, "hover.png", [...(await linesBox(vscode, "def forward", "return x")), shown]);
  await vscode.page.close();
}

async function fix(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "wrong_in_features.py");
  await vscode.squiggles(1);
  await quickFixMenu(vscode);
  await take(vscode, "quick-fix.png", await linesBox(vscode, "# shapelens:", "return x"));

  await vscode.page.keyboard.press("Escape");
  await vscode.problems("fc1 gets");
  const rows = vscode.page.locator(".markers-panel .monaco-list-row");
  await rows.filter({ hasText: "fc1 gets" }).click();
  await vscode.page.keyboard.press("ArrowRight");
  await rows.filter({ hasText: "Ln 23" }).waitFor({ timeout: 10_000 });
  // Below the title bar, down to the last row: a window that is just high enough for the class and its problem.
  await vscode.page.setViewportSize({ width: 1040, height: 850 });
  await vscode.click("self.fc1 = nn.Linear", "6 * 6");
  await vscode.page.keyboard.press("Control+End");
  await quickFixMenu(vscode);
  const editor = await vscode.page.locator(".part.editor").boundingBox();
  const last = await rows.last().boundingBox();
  await take(vscode, "finding.png", [{ x: editor.x + SIDE, y: editor.y + ABOVE, width: editor.width - 2 * SIDE, height: last.y + last.height - editor.y }]);
  await vscode.page.close();
}

async function model(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "recipe.py");
  await vscode.page.setViewportSize({ width: 1600, height: 760 });
  await vscode.click("self.fc1 = nn.Linear", "fc1");
  await vscode.command("ShapeLens: Show Model");
  const frame = vscode.page.frameLocator("iframe.webview").frameLocator("iframe");
  await frame.locator("#tree tr.at-cursor", { hasText: "fc1" }).waitFor({ timeout: 60_000 });
  // Both wide enough for their lines.
  const narrow = await vscode.page.locator(".part.auxiliarybar").boundingBox();
  const [border, middle] = [narrow.x - 3, narrow.y + narrow.height / 2];
  await vscode.page.mouse.move(border, middle, { steps: 3 });
  await vscode.page.mouse.down();
  await vscode.page.mouse.move(border - 440, middle, { steps: 20 });
  await vscode.page.mouse.up();
  const editor = await vscode.page.locator(".part.editor").boundingBox();
  const view = await vscode.page.locator(".part.auxiliarybar").boundingBox();
  await vscode.page.mouse.move(editor.x + editor.width / 2, editor.y + editor.height - 40); // Away from all that says something of itself.
  await take(vscode, "model.png", [{ x: editor.x + SIDE, y: editor.y + ABOVE, width: view.x + view.width - editor.x - 2 * SIDE, height: editor.height - 2 * ABOVE }]);
  await vscode.page.close();
}

const CELLS = [
  "%matplotlib inline\nimport torch\nfrom torch import nn",
  "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.conv = nn.Conv2d(3, 16, 5)\n        self.head = nn.Linear(16 * 6 * 6, 10)\n\n    def forward(self, x):\n        x = nn.functional.max_pool2d(self.conv(x), 2)\n        return self.head(x.flatten(1))",
  "net = Net()\nimages = torch.rand(8, 3, 16, 16)\nscores = net(images)",
  "best = scores.softmax(-1).argmax(1)\npairs = torch.stack([images, images.flip(-1)])",
];

async function cells(browser, codeServer, workspace) {
  workspace.write("net.ipynb", notebook(...CELLS));
  const vscode = await open(browser, codeServer, workspace, "recipe.py");
  await vscode.command("View: Show Explorer");
  await vscode.openNotebook("net.ipynb");
  await vscode.command("View: Close Primary Side Bar");
  await vscode.lineWith("pairs = torch.stack", "→ [2, 8, 3, 16, 16]");
  await vscode.lineWith("self.head = nn.Linear", "→ [B, 10]");
  await vscode.page.setViewportSize({ width: 880, height: 1040 });
  const editor = await vscode.page.locator(".part.editor").boundingBox();
  await vscode.page.mouse.move(editor.x + editor.width / 2, editor.y + editor.height - 5);
  const last = await vscode.box("pairs = torch.stack");
  const top = editor.y + ABOVE;
  await take(vscode, "notebook.png", [{ x: editor.x + SIDE, y: top, width: editor.width - 2 * SIDE, height: last.y + last.height + SIDE - top }]);
  await vscode.page.close();
}

async function quickFixMenu(vscode) {
  await vscode.quickFixes("nn.Linear(16 * 6 * 6", "6 * 6");
  await vscode.page.locator(".action-widget:visible").first().waitFor();
}

const workspace = new Workspace();
let codeServer;
let browser;
try {
  codeServer = await CodeServer.start({ vsix: vsix(), settings: SETTINGS, machine: { "shapelens.interpreter": pythonWithTorch() } });
  browser = await openBrowser({ width: 880, height: 1000, scale: 2 });
  const wanted = process.argv.slice(2); // Names of pictures; all by default.
  for (const picture of [hints, hover, fix, model, cells]) {
    if (!wanted.length || wanted.includes(picture.name)) await picture(browser, codeServer, workspace);
  }
} catch (error) {
  await browser?.pages().at(-1)?.screenshot({ path: join(testOutput, "screenshots-failed.png") });
  throw error;
} finally {
  await browser?.close();
  await codeServer?.stop();
  workspace.remove();
}
