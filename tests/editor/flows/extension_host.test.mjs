// The tests of extension_host/ run inside VS Code, and are counted here one by one.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openBrowser } from "../vscode/browser.mjs";
import { CodeServer } from "../vscode/code_server.mjs";
import { editorTests, olderCodeServer, pythonWithTorch, testOutput, vsix } from "../vscode/paths.mjs";
import { PATIENCE } from "../vscode/patience.mjs";
import { eventually } from "../vscode/workbench.mjs";
import { recipe, Workspace } from "../vscode/workspace.mjs";

const DEADLINE = 600_000; // ms

const skip = olderCodeServer && `code-server ${olderCodeServer} has no driver for tests inside of it`;

test("in the extension host", { timeout: DEADLINE, skip }, async (context) => {
  const workspace = new Workspace({ "no_directive.py": recipe("recipe.py").replace(/^# shapelens:.*\n/m, "") });
  const options = ["--vscode-option", "enable-smoke-test-driver"];
  let codeServer;
  let browser;
  try {
    codeServer = await CodeServer.start({ vsix: vsix(), machine: { "shapelens.interpreter": pythonWithTorch() }, options });
    browser = await openBrowser();
    const page = await browser.newPage();
    let exitCode;
    const log = [];
    await page.exposeFunction("codeAutomationLog", (type, args) => log.push([type, ...args].join(" ")));
    await page.exposeFunction("codeAutomationExit", (code) => (exitCode = code));
    const installed = readdirSync(codeServer.extensions).find((name) => name.startsWith("shapelens."));
    await page.goto(codeServer.url(workspace.folder, undefined, [
      ["extensionDevelopmentPath", codeServer.remote(join(codeServer.extensions, installed))],
      ["extensionTestsPath", codeServer.remote(join(editorTests, "extension_host", "index.cjs"))],
      ["skipWelcome", "true"],
    ]), { waitUntil: "commit" });
    await eventually("the tests in the extension host end", () => exitCode !== undefined && existsSync(workspace.path("results.json")), DEADLINE, () => log.join("\n"));
    const results = JSON.parse(workspace.read("results.json"));
    if (exitCode !== 0) codeServer.keepLogs(join(testOutput, "extension-host"));
    for (const { title, error } of results) {
      await context.test(title, () => {
        if (error) throw new Error(error);
      });
    }
    if (!results.length) throw new Error(`no test ran:\n${log.join("\n")}`);
  } finally {
    await browser?.close();
    await codeServer?.stop();
    workspace.remove();
  }
});
