// Runs in VS Code's extension host: Mocha over the *.test.cjs files of this folder. What became of each test is written to results.json
// of the workspace, since the extension host has no other way out.
const fs = require("node:fs");
const path = require("node:path");
const Mocha = require("mocha");
const vscode = require("vscode");

exports.run = () =>
  new Promise((resolve, reject) => {
    const mocha = new Mocha({ ui: "bdd", timeout: 180_000 });
    for (const name of fs.readdirSync(__dirname).filter((name) => name.endsWith(".test.cjs")).sort()) mocha.addFile(path.join(__dirname, name));
    const results = [];
    const runner = mocha.run((failures) => {
      const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
      fs.writeFileSync(path.join(folder, "results.json"), JSON.stringify(results));
      if (failures) reject(new Error(`${failures} tests failed`));
      else resolve();
    });
    runner.on("pass", (test) => results.push({ title: test.fullTitle(), duration: test.duration }));
    runner.on("fail", (test, error) => results.push({ title: test.fullTitle(), error: error.stack ?? String(error) }));
  });
