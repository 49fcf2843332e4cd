// Models that are not as most are, and texts that are not finished: the view shows what there is, and is never empty in between.
import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { flows } from "../vscode/flow.mjs";
import { modelFrame, modelPage, row, showModel } from "../vscode/model_view.mjs";
import { testOutput } from "../vscode/paths.mjs";
import { PATIENCE } from "../vscode/patience.mjs";
import { eventually } from "../vscode/workbench.mjs";

const flow = flows();

const ODD = `import torch
from torch import nn


# shapelens: Two()(f32[B:2, T:16, 8])
# shapelens: Two()(f32[B:3, 8, 8])
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.spare = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class Settings:
    width = 8


class Unasked(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 4)


class Guessed(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.layer = nn.Linear(settings["in"].width, 4)

    def forward(self, batch):
        return self.layer(batch.features["x"].rows)


# shapelens: Tree(3)(f32[B:2, 8])
class Tree(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.mix = nn.Linear(8, 8)
        self.branches = nn.ModuleList([Tree(depth - 1) for _ in range(2)] if depth else [])

    def forward(self, x):
        return self.mix(x) + sum(branch(x) for branch in self.branches)


class Part(nn.Module):
    def __init__(self, owner):
        super().__init__()
        self.owner = owner
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        return self.inner(x)


# shapelens: Cyclic()(f32[B:2, 8])
class Cyclic(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part(self)
        self.again = self.part

    def forward(self, x):
        return self.again(self.part(x))
`;
const odd = { open: "odd.py", files: { "odd.py": ODD } };

const blocks = (frame) => frame.locator(".toolbar button", { hasText: "Blocks" }).click();
const box = (frame, text) => frame.locator("#blocks .box", { hasText: text });

/** Puts the cursor into `text`, wherever in the file that is. */
async function cursorAt(vscode, text, line) {
  const { keyboard } = vscode.page;
  await vscode.focusEditor();
  await keyboard.press("Control+g");
  await (await vscode.inputBox()).waitFor();
  await keyboard.type(String(line));
  await keyboard.press("Enter");
  await vscode.lineWith(text);
}
const lineOf = (source, text) => source.split("\n").findIndex((line) => line.includes(text)) + 1;

flow("a class that nothing calls asks for an example, and the view goes on from there", odd, async ({ vscode }) => {
  await vscode.lineWith("return self.layer(x)", "→ [B, T, 4]");
  await cursorAt(vscode, "nn.Linear(width, 4)", lineOf(ODD, "nn.Linear(width, 4)"));
  await vscode.command("ShapeLens: Show Model");
  const frame = await modelFrame(vscode, "#root [role=status]");
  await frame.locator("[role=status]", { hasText: "Unasked" }).waitFor();
  await vscode.screenshot(join(testOutput, "model-never-called.png"));
  await frame.getByRole("button", { name: "Set an example…" }).click();
  await eventually("the call is proposed", async () => (await (await vscode.inputBox()).inputValue()).startsWith("Unasked("));
  await vscode.page.keyboard.press("Escape");
  await cursorAt(vscode, 'settings["in"]', lineOf(ODD, 'settings["in"]'));
  await frame.locator("main .outcome", { hasText: "No example input was found for Guessed" }).waitFor();
  await row(frame, "layer").locator("text=not called").waitFor();
  assert.equal(await frame.locator("#tree .failed, #tree tr.message").count(), 0);
  await vscode.screenshot(join(testOutput, "model-guessed.png"));
  await cursorAt(vscode, "self.spare", lineOf(ODD, "self.spare"));
  await row(frame, "layer").locator("text=[B, T, 4]").waitFor();
  await cursorAt(vscode, "width = 8", lineOf(ODD, "width = 8")); // In a class that is no model: what is shown stays.
  await sleep(1000);
  await frame.locator("h1", { hasText: "Two" }).waitFor();
});

flow("a model that holds itself, and one that is a tree of its own class, unfold", { ...odd, goesOn: true }, async ({ vscode }) => {
  await vscode.lineWith("return self.layer(x)", "→ [B, T, 4]");
  await cursorAt(vscode, "self.mix = nn.Linear", lineOf(ODD, "self.mix ="));
  const frame = await showModel(vscode);
  await frame.locator("h1", { hasText: "Tree" }).waitFor();
  for (const text of ["branches", "×2", "0 Tree"]) await row(frame, text).first().locator(".fold").click();
  await eventually("the tree inside of the tree", async () => (await row(frame, "mix").count()) >= 2);
  await vscode.screenshot(join(testOutput, "model-recursive-tree.png"));
  await blocks(frame);
  await box(frame, "mix").first().waitFor();
  for (let depth = 0; depth < 2; depth += 1) {
    await frame.locator('#blocks .box[aria-expanded="false"]', { hasText: "Tree" }).first().focus();
    await vscode.page.keyboard.press("Enter");
    await eventually(`${depth + 2} levels`, async () => (await box(frame, "mix").count()) >= depth + 2);
  }
  await vscode.screenshot(join(testOutput, "model-recursive-blocks.png"));
  await cursorAt(vscode, "self.part = Part(self)", lineOf(ODD, "self.part ="));
  await frame.locator("h1", { hasText: "Cyclic" }).waitFor();
  await box(frame, "part").first().waitFor();
  await frame.locator(".toolbar button", { hasText: "Tree" }).click();
  await row(frame, "part").locator("text=2 calls").waitFor();
  await vscode.screenshot(join(testOutput, "model-holds-itself.png"));
});

// Comes last: which example was chosen is remembered.
flow("a class with two examples is shown with one and the other, and a layer that is never called says so", { ...odd, goesOn: true }, async ({ vscode }) => {
  await vscode.lineWith("return self.layer(x)", "→ [B, T, 4]");
  await vscode.click("self.spare = nn.Linear", "spare");
  const frame = await showModel(vscode);
  await row(frame, "spare").locator("text=not called").waitFor();
  await row(frame, "layer").locator("text=[B, T, 4]").waitFor();
  await frame.locator("header .totals", { hasText: "training step" }).waitFor();
  await vscode.screenshot(join(testOutput, "model-two-examples.png"));
  await frame.getByLabel("Example").selectOption({ index: 1 });
  await row(frame, "layer").locator("text=[B, 8, 4]").waitFor();
  await frame.locator("header code", { hasText: "Two()(f32[B:3, 8, 8])" }).waitFor();
});

const FAILING = `import torch
from torch import nn


# shapelens: Missing()(f32[B:2, 8])
class Missing(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        x = x + self.missing
        return self.layer(x)


# shapelens: Wrong()(f32[B:2, 8])
class Wrong(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(9, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        x = self.first(x)
        return self.second(x)
`;

flow("a model that fails at its first line shows why, and what it is made of", { open: "failing.py", files: { "failing.py": FAILING } }, async ({ vscode }) => {
  await vscode.lineWith("x = self.first(x)", "→ [B, 4]");
  await vscode.click("self.layer = nn.Linear", "layer");
  const frame = await showModel(vscode);
  await frame.locator("main .outcome.error", { hasText: "missing" }).waitFor();
  await row(frame, "layer").locator("text=36").first().waitFor();
  await vscode.screenshot(join(testOutput, "model-fails-at-once.png"));
  await blocks(frame);
  await frame.locator("#blocks").locator(".box, [role=status]").first().waitFor();
  await vscode.screenshot(join(testOutput, "model-fails-at-once-blocks.png"));
  await frame.locator(".toolbar button", { hasText: "Tree" }).click();
  await vscode.click("self.second = nn.Linear", "second");
  await frame.locator("#tree tr.message", { hasText: "in_features" }).waitFor();
  await row(frame, "second").locator("text=[B, 2]").waitFor();
  await blocks(frame);
  await frame.locator("#blocks .box.failed", { hasText: "first" }).waitFor();
  await vscode.screenshot(join(testOutput, "model-fails-at-its-first-layer.png"));
});

const THOUSAND = `import torch
from torch import nn


# shapelens: Thousand()(f32[B:2, 8])
class Thousand(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width + 1) for width in range(8, 1008)])

    def forward(self, x):
        return self.layers(x)
`;

flow("a thousand modules that differ are all in the table, and a hundred boxes of them in the picture", { open: "thousand.py", files: { "thousand.py": THOUSAND } }, async ({ vscode }) => {
  const { keyboard } = vscode.page;
  await vscode.lineWith("return self.layers(x)", "→ [B, 1008]");
  await vscode.click("self.layers = nn.Sequential", "layers");
  const frame = await showModel(vscode);
  await row(frame, "layers").first().waitFor();
  await row(frame, "layers").first().focus();
  await keyboard.press("ArrowRight");
  const rows = frame.locator("#tree tbody tr[data-id]");
  await eventually("all rows", async () => (await rows.count()) === 1002, PATIENCE, async () => `${await rows.count()} rows`);
  await keyboard.press("End");
  await frame.locator("#tree tr[data-id]:focus", { hasText: "[B, 1008]" }).waitFor();
  await vscode.screenshot(join(testOutput, "model-thousand.png"));
  await blocks(frame);
  await box(frame, "Sequential").first().waitFor();
  await box(frame, "Sequential").first().focus();
  await keyboard.press("Enter");
  const group = box(frame, "0 Linear …").first();
  await group.waitFor();
  await group.focus();
  await keyboard.press("Enter");
  await box(frame, /^\s*7 Linear/).first().waitFor();
  await frame.locator("header .totals", { hasText: "being counted" }).waitFor({ state: "detached" });
  assert.ok((await frame.locator("#blocks .box").count()) <= 120, `${await frame.locator("#blocks .box").count()} boxes`);
  await vscode.screenshot(join(testOutput, "model-thousand-blocks.png"));
});

const NET = `import torch
from torch import nn


# shapelens: Net()(f32[B:2, T:16, 64])
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(64, 64) for _ in range(12)])
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))
`;

/** In the view's page: writes down from now on when none of what `selector` finds is there, after each change and in each frame. */
const watch = (selector) => {
  const kept = document.querySelector("#tree tbody tr[data-id], #blocks svg");
  const seen = { changes: 0, empty: [], kept };
  const look = () => {
    if (document.querySelectorAll(selector).length < 2) seen.empty.push(document.getElementById("root").textContent.slice(0, 200));
  };
  new MutationObserver((records) => {
    seen.changes += records.length;
    look();
  }).observe(document.documentElement, { childList: true, subtree: true, characterData: true });
  const frame = () => {
    look();
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  window.watched = seen;
};

for (const tab of ["Tree", "Blocks"]) {
  flow(`nothing flickers while somebody types, in ${tab}`, { open: "net.py", files: { "net.py": NET }, goesOn: tab === "Blocks" }, async ({ vscode }) => {
    const { keyboard } = vscode.page;
    await vscode.lineWith("return self.head", "→ [B, 10]");
    await vscode.click("self.head = nn.Linear", "head");
    const frame = await showModel(vscode);
    await frame.locator("header .totals", { hasText: "training step" }).waitFor();
    await frame.locator(".toolbar button", { hasText: tab }).click();
    const part = (text) => (tab === "Tree" ? row(frame, text) : box(frame, text));
    await part("head").first().waitFor();
    await part("tail").first().waitFor({ state: "detached" });
    const page = await modelPage(frame);
    await page.evaluate(watch, "#tree tbody tr[data-id], #blocks .box");
    await vscode.page.locator(".view-line", { hasText: "self.head = nn.Linear" }).click();
    await keyboard.press("End");
    await keyboard.type("\nself.tail = nn.Lin", { delay: 120 });
    // The constructor fails at the half-typed name.
    await frame.locator("header .note", { hasText: "Lin'. This is what was seen of it before." }).waitFor();
    await keyboard.type("ear(10, 5", { delay: 120 });
    await sleep(1500); // The text is broken for as long as somebody thinks.
    await keyboard.type(")", { delay: 120 });
    await cursorAt(vscode, "return self.head", lineOf(NET, "return self.head") + 1);
    await keyboard.press("End");
    await keyboard.type(" @ (", { delay: 120 });
    await sleep(1500);
    for (let times = 0; times < 4; times += 1) await keyboard.press("Backspace", { delay: 120 });
    for (const _ of "self.head(x.mean(1))") await keyboard.press("Shift+ArrowLeft");
    await keyboard.type("self.tail(self.head(x.mean(1", { delay: 120 });
    await keyboard.press("End");
    await part("tail").first().waitFor();
    await part("tail").first().locator(tab === "Tree" ? "text=[B, 5]" : "rect").first().waitFor();
    await frame.locator("header .totals", { hasText: "being counted" }).waitFor({ state: "detached" });
    const seen = await page.evaluate(() => ({ ...window.watched, kept: window.watched.kept.isConnected }));
    assert.deepEqual([...new Set(seen.empty)], [], "the view was empty");
    assert.ok(seen.changes > 0, "nothing has changed");
    assert.ok(seen.kept, "what stays is made anew");
    await vscode.screenshot(join(testOutput, `model-typed-${tab.toLowerCase()}.png`));
  });
}
