// The pictures of the READMEs, taken from the real editor: vscode-extension/images/*.png, and the one that moves, fix.gif.
//
//     node screenshots.mjs [--dark] [NAME …]   --dark: with the dark theme, into test-output/editor, to be looked at
import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import sharp from "sharp";
import { openBrowser } from "./vscode/browser.mjs";
import { CodeServer } from "./vscode/code_server.mjs";
import { notebook } from "./vscode/notebook_file.mjs";
import { pythonWithTorch, repository, testOutput, vsix } from "./vscode/paths.mjs";
import { eventually, Workbench } from "./vscode/workbench.mjs";
import { Workspace } from "./vscode/workspace.mjs";

const wanted = process.argv.slice(2).filter((name) => name !== "--dark"); // Names of pictures; all by default.
const dark = process.argv.includes("--dark");
const IMAGES = dark ? join(testOutput, "dark") : join(repository, "vscode-extension", "images");
const DARK = { "workbench.colorTheme": "Default Dark Modern" };
const FILM_BYTES = 1_000_000; // more is slow to load on the page of a project
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

// As a newcomer has it: nothing in it is there for ShapeLens.
const NET = `import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return x


net = Net()
scores = net(torch.randn(8, 3, 32, 32))
`;
const WRONG = NET.replace("16 * 5 * 5", "16 * 6 * 6");

/** The box (CSS pixels) that holds all of `boxes`, with a margin. */
function around(boxes) {
  const left = Math.min(...boxes.map((box) => box.x)) - SIDE;
  const top = Math.min(...boxes.map((box) => box.y)) - ABOVE;
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + SIDE;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + ABOVE;
  return { x: left, y: top, width: right - left, height: bottom - top };
}

/** The boxes of the whole class, with the lens above it. */
async function classBox(vscode) {
  const lines = await linesBox(vscode, "class Net", "return x");
  const lens = await eventually("the box of the lens", async () => (await vscode.lens("parameters")).boundingBox()); // It is drawn anew now and then.
  return [lens, ...lines];
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
  console.log(join(IMAGES, name));
}

/** Takes a picture after the other of one part of the window, each with the time for which that was to be seen, until it is stopped. */
class Film {
  #frames = []; // {png, at}: only those that differ from the one before them
  #running = true;
  #done;

  constructor(vscode, boxes) {
    this.#done = this.#run(vscode, around(boxes));
  }

  async #run(vscode, clip) {
    while (this.#running) {
      const at = performance.now();
      const png = await vscode.page.screenshot({ clip, animations: "allow", caret: "initial" });
      if (!this.#frames.at(-1)?.png.equals(png)) this.#frames.push({ png, at });
      await sleep(40);
    }
  }

  /** Writes what was seen as a GIF that begins again after its last frame. @throws when it is larger than FILM_BYTES. */
  async stop(name) {
    const end = performance.now();
    this.#running = false;
    await this.#done;
    const ends = [...this.#frames.slice(1).map((frame) => frame.at), end];
    const delay = this.#frames.map((frame, index) => Math.max(20, Math.round(ends[index] - frame.at)));
    const file = join(IMAGES, name);
    // The colours of a theme are few, and of the greys between them nobody misses one.
    await sharp(this.#frames.map((frame) => frame.png), { join: { animated: true } }).gif({ delay, loop: 0, colours: 128, dither: 0, effort: 10 }).toFile(file);
    const { size } = statSync(file);
    console.log(`${file}: ${this.#frames.length} frames, ${Math.round((end - this.#frames[0].at) / 1000)} s, ${Math.round(size / 1000)} kB`);
    if (size > FILM_BYTES) throw new Error(`${file} is larger than ${FILM_BYTES} bytes`);
  }
}

/** A wrong number is typed, shapes follow, the number that no longer fits is underlined, and its fix is taken: as fast as it really is. */
async function film(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "net.py");
  const { keyboard, mouse } = vscode.page;
  const [lens, ...lines] = await classBox(vscode);
  const editor = await vscode.page.locator(".part.editor").boundingBox();
  const film = new Film(vscode, [lens, ...lines, { ...lens, x: editor.x + SIDE, width: editor.width - 2 * SIDE }]);
  await sleep(1500);
  const kernel = await vscode.still("nn.Conv2d(6, 16, 5", "5");
  await mouse.click(kernel.x + kernel.width - 0.5, kernel.y + kernel.height / 2);
  await sleep(500);
  await keyboard.press("Backspace");
  await sleep(250);
  await keyboard.type("3");
  await vscode.lineWith("x = torch.flatten(x, 1)", "→ [B, 576]");
  await vscode.squiggles(1);
  await sleep(1200);
  await vscode.hover("nn.Linear(16 * 5 * 5", "5 * 5", "fc1 gets 576 features");
  await sleep(2500);
  await vscode.leaveHover();
  await vscode.quickFixes("nn.Linear(16 * 5 * 5", "5 * 5", "16 * 6 * 6");
  await sleep(1200);
  await keyboard.press("Enter");
  await vscode.lineWith("self.fc1 = nn.Linear(16 * 6 * 6, 120)", "→ [B, 120]");
  await vscode.squiggles(0);
  await sleep(2500);
  await film.stop("fix.gif");
  await vscode.page.close();
}

async function hints(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "net.py");
  await take(vscode, "hints.png", await classBox(vscode));
  await vscode.page.close();
}

async function hover(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "net.py");
  await vscode.hover("x = F.relu(self.fc1", "fc1", "parameters");
  const shown = await vscode.page.locator(".monaco-hover:visible").first().boundingBox();
  await take(vscode, "hover.png", [...(await linesBox(vscode, "def forward", "return x")), shown]);
  await vscode.page.close();
}

async function fix(browser, codeServer, workspace) {
  const vscode = await open(browser, codeServer, workspace, "wrong.py");
  await vscode.squiggles(1);
  await quickFixMenu(vscode);
  const menu = await vscode.page.locator(".action-widget:visible").first().boundingBox();
  await take(vscode, "quick-fix.png", [...(await classBox(vscode)), menu]);

  await vscode.page.keyboard.press("Escape");
  await vscode.problems("fc1 gets");
  const rows = vscode.page.locator(".markers-panel .monaco-list-row");
  await rows.filter({ hasText: "fc1 gets" }).click();
  await vscode.page.keyboard.press("ArrowRight");
  await rows.filter({ hasText: "Ln 20" }).waitFor({ timeout: 10_000 });
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
  const vscode = await open(browser, codeServer, workspace, "net.py");
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
  await vscode.page.mouse.move(editor.x + editor.width - 60, editor.y + editor.height - 20); // Away from all that says something of itself.
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
  workspace.write("cells.ipynb", notebook(...CELLS));
  const vscode = await open(browser, codeServer, workspace, "net.py");
  await vscode.command("View: Show Explorer");
  await vscode.openNotebook("cells.ipynb");
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

const workspace = new Workspace({ "net.py": NET, "wrong.py": WRONG });

/** Takes those of `pictures` that are wanted, in an editor of their own. */
async function takeAll(pictures, settings, scale) {
  const chosen = pictures.filter((picture) => !wanted.length || wanted.includes(picture.name));
  if (!chosen.length) return;
  let codeServer;
  let browser;
  try {
    codeServer = await CodeServer.start({ vsix: vsix(), settings: { ...SETTINGS, ...settings }, machine: { "shapelens.interpreter": pythonWithTorch() } });
    browser = await openBrowser({ width: 880, height: 1000, scale });
    for (const picture of chosen) await picture(browser, codeServer, workspace);
  } catch (error) {
    await browser?.pages().at(-1)?.screenshot({ path: join(testOutput, "screenshots-failed.png") });
    throw error;
  } finally {
    await browser?.close();
    await codeServer?.stop();
  }
}

try {
  await takeAll([hints, hover, fix, model, cells], dark ? DARK : {}, 2);
  await takeAll([film], { ...DARK, "editor.cursorBlinking": "solid", "editor.scrollbar.vertical": "hidden" }, 1.5);
} finally {
  workspace.remove();
}
