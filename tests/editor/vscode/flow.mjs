// A flow: one test that opens a folder in VS Code, does what a person would, and leaves a screenshot of how it ended.
import { after, before, test } from "node:test";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { CodeServer } from "./code_server.mjs";
import { pythonWithTorch, testOutput, vsix } from "./paths.mjs";
import { Workbench } from "./workbench.mjs";
import { Workspace } from "./workspace.mjs";

const FLOW_DEADLINE = 180_000; // ms

/**
 * Starts VS Code with the extension for the flows of a file and hands back what defines them:
 * `flow(title, {open, files, settings}, steps)`, where steps gets {vscode, workspace, codeServer}.
 * @param {{trust?: "granted" | "asked", machine?: object}} options see CodeServer.start
 */
export function flows({ trust = "granted", machine = { "shapelens.interpreter": pythonWithTorch() } } = {}) {
  let codeServer;
  let browser;

  before(async () => {
    codeServer = await CodeServer.start({ vsix: vsix(), trust, machine });
    browser = await openBrowser();
  });

  after(async () => {
    await browser?.close();
    await codeServer?.stop();
  });

  return (title, { open = "recipe.py", files = {}, settings } = {}, steps) =>
    test(title, { timeout: FLOW_DEADLINE }, async () => {
      const output = join(testOutput, title.replaceAll(/\W+/g, "-").toLowerCase());
      const workspace = new Workspace(files);
      if (settings) workspace.settings(settings);
      let vscode;
      try {
        vscode = await Workbench.open(browser, codeServer.url(workspace.folder, workspace.path(open)), open);
        await steps({ vscode, workspace, codeServer });
      } catch (error) {
        codeServer.keepLogs(output);
        error.message += `\nlogs: ${output}`;
        throw error;
      } finally {
        await vscode?.screenshot(`${output}.png`);
        await vscode?.page.close();
        workspace.remove();
      }
    });
}
