// A flow: one test that does in VS Code what a person would, and leaves a screenshot of how it ended.
import { after, before, test } from "node:test";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { openBrowser } from "./browser.mjs";
import { CodeServer } from "./code_server.mjs";
import { pythonWithTorch, testOutput, vsix } from "./paths.mjs";
import { SLOWNESS } from "./patience.mjs";
import { Workbench } from "./workbench.mjs";
import { Workspace } from "./workspace.mjs";

const FLOW_DEADLINE = 150_000 * SLOWNESS; // ms

/**
 * Starts VS Code with the extension for the flows of a file and hands back what defines them:
 * `flow(title, {open, files, settings, goesOn}, steps)`, where steps gets {vscode, workspace, codeServer}.
 *
 * A flow has a folder and a window of its own. One that goes on takes those of the flow before, with the text as it was at first and the
 * settings that it names; where that flow has failed, saved something or had other files, it has its own.
 * @param {{trust?: "granted" | "asked", machine?: object}} options see CodeServer.start
 */
export function flows({ trust = "granted", machine = { "shapelens.interpreter": pythonWithTorch() } } = {}) {
  let codeServer;
  let browser;
  let shown; // the window that is there, as {vscode, workspace, open, files, settings, left}; left: the flow in it has ended well

  before(async () => {
    codeServer = await CodeServer.start({ vsix: vsix(), trust, machine });
    browser = await openBrowser();
  });

  after(async () => {
    shown?.workspace.remove();
    await browser?.close();
    await codeServer?.stop();
  });

  /** The window for a flow. */
  async function show(wanted, goesOn) {
    const before = shown;
    if (goesOn && before?.left && isDeepStrictEqual([before.open, before.files], [wanted.open, wanted.files]) && before.workspace.isUnchanged()) {
      before.left = false;
      await before.vscode.startOver();
      if (!isDeepStrictEqual(before.settings, wanted.settings)) before.workspace.settings(wanted.settings);
      before.settings = wanted.settings;
      return before;
    }
    if (before) await close(before);
    const workspace = new Workspace(wanted.files);
    if (Object.keys(wanted.settings).length) workspace.settings(wanted.settings);
    shown = { ...wanted, workspace, left: false };
    const window = shown;
    window.vscode = await Workbench.open(browser, codeServer.url(workspace.folder, workspace.path(wanted.open)), wanted.open);
    return window;
  }

  async function close(window) {
    if (shown === window) shown = undefined;
    await window.vscode?.page.close();
    window.workspace.remove();
  }

  return (title, { open = "recipe.py", files = {}, settings = {}, goesOn = false } = {}, steps) =>
    test(title, { timeout: FLOW_DEADLINE }, async () => {
      const output = join(testOutput, title.replaceAll(/\W+/g, "-").toLowerCase());
      let window;
      try {
        window = await show({ open, files, settings }, goesOn);
        await steps({ vscode: window.vscode, workspace: window.workspace, codeServer });
        await window.vscode.screenshot(`${output}.png`);
        window.left = true;
      } catch (error) {
        codeServer.keepLogs(output);
        error.message += `\nlogs: ${output}`;
        window ??= shown;
        const page = window?.vscode?.page ?? browser.pages().at(-1); // The last one is a window that did not open.
        await page?.screenshot({ path: `${output}.png` }).catch(() => {});
        await page?.close();
        if (window) await close(window);
        throw error;
      }
    });
}
