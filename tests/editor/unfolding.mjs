// How long the view of a large model takes to unfold and fold, in the real VS Code: npm run unfolding [-- ROUNDS]
// The page's own clock, from a click to the end of what it sets off, layout included, and to the frame that shows it. The interpreter
// (SHAPELENS_TEST_PYTHON) needs torchvision and diffusers for two of the models; those that it cannot build are left out.
import { loadavg } from "node:os";
import { openBrowser } from "./vscode/browser.mjs";
import { CodeServer } from "./vscode/code_server.mjs";
import { modelPage, showModel } from "./vscode/model_view.mjs";
import { pythonWithTorch, vsix } from "./vscode/paths.mjs";
import { Workbench } from "./vscode/workbench.mjs";
import { Workspace } from "./vscode/workspace.mjs";

const ROUNDS = Number(process.argv[2] ?? 30); // parts of a model that are unfolded

const MODELS = {
  "resnet152.py": `from torchvision.models.resnet import Bottleneck, ResNet


# shapelens: ResNet152()(f32[B:2, 3, 224, 224])
class ResNet152(ResNet):
    def __init__(self):
        super().__init__(Bottleneck, [3, 8, 36, 3])

    def forward(self, x):
        return super().forward(x)
`,
  "transformer.py": `import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (each(x).view(batch, length, self.heads, -1).transpose(1, 2) for each in (self.q, self.k, self.v))
        weights = (q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


# shapelens: Transformer()(i64[B:2, T:128])
class Transformer(nn.Module):
    def __init__(self, layers=24, width=1024, heads=16):
        super().__init__()
        self.tokens = nn.Embedding(32000, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.head = nn.Linear(width, 32000)

    def forward(self, x):
        x = self.tokens(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
`,
  "unet.py": `from diffusers import UNet2DModel
from torch import nn


# shapelens: Denoiser()(f32[B:2, 3, 64, 64], i64[B:2])
class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        down = ("DownBlock2D",) * 4 + ("AttnDownBlock2D", "DownBlock2D")
        up = ("UpBlock2D", "AttnUpBlock2D") + ("UpBlock2D",) * 4
        self.unet = UNet2DModel(64, 3, 3, layers_per_block=2, block_out_channels=(128, 128, 256, 256, 512, 512), down_block_types=down, up_block_types=up)

    def forward(self, x, step):
        return self.unet(x, step).sample
`,
};

/** In the view's page: unfolds and folds the parts that `parts` finds, and unfolds them again, from the top, and hands back ms for each. */
async function timed([parts, selector, rounds]) {
  const painted = () => new Promise((resolve) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve(performance.now());
    port2.postMessage(0);
  }));
  const click = async (id) => {
    await painted();
    await new Promise((resolve) => setTimeout(resolve, 30));
    const part = [...document.querySelectorAll(parts)].find((each) => each.dataset.id === id);
    const start = performance.now();
    (part.querySelector(selector) ?? part).dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    document.body.getBoundingClientRect();
    const handled = performance.now() - start;
    return [handled, (await painted()) - start];
  };
  const seen = new Set();
  const times = { unfold: [], fold: [] };
  let most = 0;
  for (let round = 0; round < rounds; round += 1) {
    const part = [...document.querySelectorAll(`${parts}[aria-expanded="false"]`)].find((each) => !seen.has(each.dataset.id));
    if (!part) break;
    const { id } = part.dataset;
    seen.add(id);
    times.unfold.push(await click(id));
    times.fold.push(await click(id));
    times.unfold.push(await click(id));
    most = Math.max(most, document.querySelectorAll(parts).length);
  }
  return { times, most };
}

const at = (times, share) => times.toSorted((a, b) => a - b)[Math.floor(share * (times.length - 1))].toFixed(0);
const described = (times) => [0, 1].map((which) => times.map((each) => each[which])).map((all) => `p50 ${at(all, 0.5)}, p90 ${at(all, 0.9)}, most ${at(all, 1)}`);

const codeServer = await CodeServer.start({ vsix: vsix(), trust: "granted", machine: { "shapelens.interpreter": pythonWithTorch() } });
const browser = await openBrowser();
const workspace = new Workspace(MODELS);
try {
  for (const [name, text] of Object.entries(MODELS)) {
    const vscode = await Workbench.open(browser, codeServer.url(workspace.folder, workspace.path(name)), name);
    try {
      const lines = text.split("\n");
      const directive = lines.findIndex((line) => line.startsWith("# shapelens:"));
      await vscode.page.keyboard.press("Control+End");
      await vscode.lineWith(lines.filter(Boolean).at(-1).trim(), "→");
      const frame = await showModel(vscode);
      await frame.locator("header .totals", { hasText: "training step" }).waitFor({ timeout: 120_000 });
      const page = await modelPage(frame);
      for (const [tab, parts, selector] of [["Tree", "#tree tbody tr[data-id]", ".fold"], ["Blocks", "#blocks .box", "rect"]]) {
        await frame.locator(".toolbar button", { hasText: tab }).click();
        await frame.locator(parts).first().waitFor({ timeout: 60_000 });
        const { times, most } = await page.evaluate(timed, [parts, selector, ROUNDS]);
        for (const [what, all] of Object.entries(times)) {
          const [handled, onScreen] = described(all);
          console.log(`${name} ${tab}, ${what}: handled ${handled} ms; on screen ${onScreen} ms (${all.length} times, up to ${most} parts, load ${loadavg()[0].toFixed(1)}) ${lines[directive]}`);
        }
      }
    } catch (error) {
      console.log(`${name}: ${error.message.split("\n")[0]}`);
    } finally {
      await vscode.page.close();
    }
  }
} finally {
  await browser.close();
  await codeServer.stop();
  workspace.remove();
}
