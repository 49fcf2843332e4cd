// The pictures of the READMEs, taken from the real editor: vscode-extension/images/*.png.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openBrowser } from "./vscode/browser.mjs";
import { CodeServer } from "./vscode/code_server.mjs";
import { pythonWithTorch, repository, vsix } from "./vscode/paths.mjs";
import { Workbench } from "./vscode/workbench.mjs";
import { Workspace } from "./vscode/workspace.mjs";

const IMAGES = join(repository, "vscode-extension", "images");
const MARGIN = 12; // CSS pixels around what is shown
const SETTINGS = {
  "editor.fontSize": 14,
  "editor.lineHeight": 22,
  "breadcrumbs.enabled": false,
  "workbench.sideBar.location": "right",
  "editor.renderLineHighlight": "none",
  "editor.occurrencesHighlight": "off",
  "editor.matchBrackets": "never",
  "editor.selectionHighlight": false,
  "editor.guides.indentation": false,
  "editor.lightbulb.enabled": "off",
  "editor.overviewRulerBorder": false,
  "editor.hideCursorInOverviewRuler": true,
};

/** The box (CSS pixels) that holds all of `boxes`, with a margin. */
function around(boxes) {
  const left = Math.min(...boxes.map((box) => box.x)) - MARGIN;
  const top = Math.min(...boxes.map((box) => box.y)) - MARGIN;
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + MARGIN;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + MARGIN;
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/** The boxes of the lines from the one with `first` to the one with `last`, line numbers included. */
async function linesBox(vscode, first, last) {
  const lines = await vscode.lines();
  const from = lines.findIndex((line) => line.includes(first));
  const shown = lines.slice(from, 1 + lines.findIndex((line, index) => index >= from && line.includes(last))).filter((line) => line.trim());
  const boxes = await Promise.all(shown.map((line) => vscode.box(line.trim())));
  const gutter = await vscode.page.locator(".editor-group-container.active .margin").first().boundingBox();
  return [...boxes, { x: gutter.x + MARGIN, y: boxes[0].y, width: 1, height: 1 }];
}

async function open(browser, codeServer, workspace, name) {
  const vscode = await Workbench.open(browser, codeServer.url(workspace.folder, workspace.path(name)), name);
  await vscode.page.keyboard.press("Control+b");
  await vscode.lineWith("return x", "→ [B, 10]");
  await vscode.lens("parameters");
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
  await vscode.hover("x = self.pool(F.relu(self.conv1", "conv1", "456");
  const shown = await vscode.page.locator(".monaco-hover:visible").first().boundingBox();
  await take(vscode, "hover.png", [...(await linesBox(vscode, "def __init__", "return x")), shown]);
  await vscode.page.close();
}

async function fix(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "wrong_in_features.py");
  await vscode.squiggles(1);
  await vscode.quickFixes("nn.Linear(16 * 6 * 6", "6 * 6");
  const menu = await vscode.page.locator(".action-widget").boundingBox();
  await take(vscode, "quick-fix.png", [...(await linesBox(vscode, "# shapelens:", "return x")), menu]);
  await vscode.page.keyboard.press("Escape");
  await vscode.hover("nn.Linear(16 * 6 * 6", "6 * 6", "fc1 gets");
  const message = await vscode.page.locator(".monaco-hover:visible").first().boundingBox();
  await take(vscode, "finding.png", [...(await linesBox(vscode, "# shapelens:", "return x")), message]);
  await vscode.page.close();
}

const workspace = new Workspace();
let codeServer;
let browser;
try {
  codeServer = await CodeServer.start({ vsix: vsix(), settings: SETTINGS, machine: { "shapelens.interpreter": pythonWithTorch() } });
  browser = await openBrowser({ width: 1100, height: 900, scale: 2 });
  for (const picture of [hints, hover, fix]) await picture(browser, codeServer, workspace);
} finally {
  await browser?.close();
  await codeServer?.stop();
  workspace.remove();
}
