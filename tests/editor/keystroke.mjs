// How long after a keystroke its squiggle is on screen, in the real VS Code: npm run keystroke [-- ROUNDS]
// The window's own clock, from the key's event to the frame that shows the squiggle or no longer does; a wrong number and the right one by turns.
import { setTimeout as sleep } from "node:timers/promises";
import { openBrowser } from "./vscode/browser.mjs";
import { CodeServer } from "./vscode/code_server.mjs";
import { pythonWithTorch, vsix } from "./vscode/paths.mjs";
import { Workbench } from "./vscode/workbench.mjs";
import { Workspace } from "./vscode/workspace.mjs";

const ROUNDS = Number(process.argv[2] ?? 15);
const PAUSE = 500; // ms between two keystrokes of a person who looks what they did
const PATIENCE = 10_000; // ms

/** In the page: resolves to the ms from the next digit's keydown to the first frame with this many squiggles. */
function timed([count, patience]) {
  return new Promise((resolve, reject) => {
    let pressed;
    const onKey = (event) => {
      if (/^[0-9]$/.test(event.key)) pressed = performance.now();
    };
    const look = () => {
      const squiggles = document.querySelectorAll(".editor-group-container.active .squiggly-error").length;
      if (pressed !== undefined && (squiggles === count || performance.now() - pressed > patience)) {
        window.removeEventListener("keydown", onKey, true);
        return squiggles === count ? resolve(performance.now() - pressed) : reject(new Error(`no ${count} squiggles after ${patience} ms`));
      }
      requestAnimationFrame(look);
    };
    window.addEventListener("keydown", onKey, true);
    requestAnimationFrame(look);
  });
}

const at = (times, share) => times.toSorted((a, b) => a - b)[Math.floor(share * (times.length - 1))].toFixed(0);

const codeServer = await CodeServer.start({ vsix: vsix(), trust: "granted", machine: { "shapelens.interpreter": pythonWithTorch() } });
const browser = await openBrowser();
const workspace = new Workspace({});
try {
  const vscode = await Workbench.open(browser, codeServer.url(workspace.folder, workspace.path("recipe.py")), "recipe.py");
  await vscode.lineWith("x = self.fc3(x)", "→ [B, 10]");
  await vscode.retype("nn.Linear(16 * 5 * 5", "16 * 5 * 5", "16 * 5 * 5"); // The cursor is behind the number now.
  const times = { wrong: [], right: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const [kind, digit, squiggles] of [["wrong", "6", 1], ["right", "5", 0]]) {
      await sleep(PAUSE);
      await vscode.page.keyboard.press("Shift+ArrowLeft");
      const time = vscode.page.evaluate(timed, [squiggles, PATIENCE]);
      await sleep(50);
      await vscode.page.keyboard.press(digit);
      times[kind].push(await time);
    }
  }
  for (const [kind, all] of Object.entries(times)) {
    console.log(`keystroke → on screen, ${kind} number: p50 ${at(all, 0.5)} ms, p90 ${at(all, 0.9)} ms, most ${at(all, 1)} ms (${all.length} times)`);
  }
} finally {
  await browser.close();
  await codeServer.stop();
  workspace.remove();
}
