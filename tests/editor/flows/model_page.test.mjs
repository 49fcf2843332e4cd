// The model as one HTML file, opened from the disk without VS Code: it asks for nothing else, and a large model folds and unfolds.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { openBrowser } from "../vscode/browser.mjs";
import { axeSource, pythonWithTorch, repository, testOutput } from "../vscode/paths.mjs";

const GPT = `import torch
from torch import nn


@torch.library.custom_op("page::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5


@scaled.register_fake
def _(x):
    return torch.empty_like(x)


scaled.register_autograd(lambda ctx, grad: grad * 0.5)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y)[0]
        return x + self.mlp(self.norms[1](x))


# shapelens: GPT()(i64[B:2, T:16])
class GPT(nn.Module):
    def __init__(self, layers=24, width=64):
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(layers)])
        self.head = nn.Linear(width, 1000)  # </script><script>document.title = "run"</script>

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(scaled(x))
`;

let browser;
let folder;
let page;
const requests = [];

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "shapelens-page-"));
  writeFileSync(join(folder, "gpt.py"), GPT);
  const command = ["show", "gpt.py::GPT", "--format", "html", "--interpreter", pythonWithTorch()];
  const html = execFileSync(join(repository, ".venv", "bin", "shapelens"), command, { cwd: folder, encoding: "utf8" });
  writeFileSync(join(folder, "gpt.html"), html);
  browser = await openBrowser();
  page = await browser.newPage();
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(join(folder, "gpt.html")).href);
  await page.locator("#tree tbody tr").first().waitFor();
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What clicks on the first element do, which fold and unfold by turns: the numbers of `parts` that are shown by turns, and the least
 * milliseconds of five in which one is handled and laid out. */
const folding = (selector, parts) => page.evaluate(([selector, parts]) => {
  const times = [];
  const shown = [document.querySelectorAll(parts).length];
  for (let turn = 0; turn < 10; turn += 1) {
    const start = performance.now();
    const event = new MouseEvent("click", { bubbles: true, cancelable: true });
    document.querySelector(selector).dispatchEvent(event);
    document.body.getBoundingClientRect();
    if (turn % 2 === 0) times.push(performance.now() - start);
    shown.push(document.querySelectorAll(parts).length);
  }
  return { milliseconds: Math.min(...times), fewest: Math.min(...shown), most: Math.max(...shown) };
}, [selector, parts]);

const violations = () => page.evaluate(async () =>
  (await window.axe.run()).violations.filter(({ impact }) => ["serious", "critical"].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes[0].html}`));

test("the page shows the model, asks for nothing else, and runs nothing of the source", async () => {
  await page.locator("#tree tbody tr", { hasText: "head" }).locator("text=[B, T, 1000]").waitFor();
  assert.equal(await page.evaluate(() => performance.getEntriesByType("resource").length), 0);
  assert.deepEqual(requests, [pathToFileURL(join(folder, "gpt.html")).href]);
  assert.notEqual(await page.title(), "run");
});

test("what takes operations and memory is summed up, with what is not counted", async () => {
  const totals = await page.locator("header .totals").textContent();
  assert.match(totals, /[MG]FLOPs forward, [\d.]+ [MG]FLOPs backward/);
  assert.match(totals, /not counted: the operations of page\.scaled/);
});

test("the search leaves what it finds, and a heading sorts", async () => {
  const rows = page.locator("#tree tbody tr[data-id]");
  const names = async () => (await rows.locator(".name").allTextContents()).map((name) => name.replace(/[▾▸]/g, "").trim());
  await page.getByRole("button", { name: "Parameters" }).click();
  assert.equal(await page.locator('th[aria-sort="descending"]').textContent(), "Parameters");
  assert.ok((await names()).findIndex((name) => name.startsWith("blocks")) < (await names()).findIndex((name) => name.startsWith("tokens")));
  await page.getByRole("searchbox").fill("attention");
  await rows.filter({ hasText: "attention" }).first().waitFor();
  assert.ok(!(await names()).some((name) => name.startsWith("head")));
  await page.getByRole("searchbox").fill("");
  await page.getByRole("button", { name: "Parameters" }).click();
  await page.getByRole("button", { name: "Parameters" }).click();
  assert.equal(await page.locator('th[aria-sort="descending"], th[aria-sort="ascending"]').count(), 0);
});

test("a click counts when the model is told of anew between press and release", async () => {
  const toolbar = await page.locator(".toolbar").boundingBox();
  const told = (complete) => page.evaluate((complete) => {
    window.dispatchEvent(new MessageEvent("message", { data: { type: "model", model: { ...structuredClone(state.model), complete } } }));
  }, complete);
  const pressed = async (of, meanwhile) => {
    const { x, y, width, height } = await of.boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    await meanwhile();
    await page.mouse.up();
  };
  await pressed(page.locator(".toolbar button", { hasText: "Blocks" }), () => told(false));
  await page.locator("#blocks svg").waitFor();
  await pressed(page.locator(".toolbar button", { hasText: "Tree" }), () => told(true));
  assert.deepEqual(await page.locator(".toolbar").boundingBox(), toolbar);
  const row = page.locator("#tree tbody tr[data-id]", { hasText: "blocks" }).first();
  const [fold, open] = [row.locator(".fold"), await row.getAttribute("aria-expanded")];
  // Its amounts are others now, as they are once memory has been counted.
  await pressed(fold, () => page.evaluate(() => { state.model.tree.forEach((each) => { each.kept_bytes += 4096; }); render(); }));
  assert.notEqual(await row.getAttribute("aria-expanded"), open);
  await fold.click();
  assert.equal(await row.getAttribute("aria-expanded"), open);
});

test("24 layers fold and unfold in the tree and in the picture", async () => {
  const row = page.locator("#tree tbody tr[data-id]", { hasText: "blocks" }).first();
  if ((await row.getAttribute("aria-expanded")) === "false") await row.locator(".fold").click();
  const tree = await folding('#tree tr[data-id$="×"] .fold', "#tree tbody tr");
  await page.locator(".toolbar button", { hasText: "Blocks" }).click();
  const box = page.locator("#blocks .box", { hasText: "×24" });
  await box.waitFor();
  const picture = await folding(`#blocks [data-id="${await box.getAttribute("data-id")}"]`, "#blocks .box");
  console.log(`unfolded in ${tree.milliseconds.toFixed(1)} ms (tree), ${picture.milliseconds.toFixed(1)} ms (picture)`);
  assert.ok(tree.most > tree.fewest && picture.most > picture.fewest, JSON.stringify([tree, picture]));
});

test("nothing keeps a reader out", async () => {
  await page.evaluate(`${axeSource}; undefined`);
  assert.deepEqual(await violations(), []);
  await page.locator(".toolbar button", { hasText: "Tree" }).click();
  assert.deepEqual(await violations(), []);
  await page.screenshot({ path: join(testOutput, "model-page.png") });
});
