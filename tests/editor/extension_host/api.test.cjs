// What other extensions and VS Code itself get from ShapeLens: the answers of its providers.
const assert = require("node:assert/strict");
const path = require("node:path");
const vscode = require("vscode");

const PATIENCE = 50_000; // ms

/** Asks until `probe` neither throws nor gives something false, and hands that back. Throws its last error otherwise. */
async function eventually(probe) {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    try {
      const value = await probe();
      if (value) return value;
      if (Date.now() > deadline) throw new Error(`still ${value}: ${probe}`);
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function open(name) {
  const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const document = await vscode.workspace.openTextDocument(path.join(folder, name));
  await vscode.window.showTextDocument(document);
  return document;
}

/** The range of `text` in the first line that has `code`. */
function rangeOf(document, code, text = code) {
  const line = document.getText().split(/\r?\n/).findIndex((line) => line.includes(code));
  assert.notEqual(line, -1, code);
  const start = document.lineAt(line).text.indexOf(text, document.lineAt(line).text.indexOf(code));
  return new vscode.Range(line, start, line, start + text.length);
}

const label = (hint) => (typeof hint.label === "string" ? hint.label : hint.label.map((part) => part.value).join("")).trim();

/** The labels of the hints by line (0-based). */
async function hints(document) {
  const whole = new vscode.Range(0, 0, document.lineCount, 0);
  const found = (await vscode.commands.executeCommand("vscode.executeInlayHintProvider", document.uri, whole)) ?? [];
  return new Map(found.map((hint) => [hint.position.line, label(hint)]));
}

async function hintAt(document, code) {
  return (await hints(document)).get(rangeOf(document, code).start.line);
}

const ours = (document) => vscode.languages.getDiagnostics(document.uri).filter((diagnostic) => diagnostic.source?.toLowerCase() === "shapelens");
const codeOf = (diagnostic) => (typeof diagnostic.code === "object" ? diagnostic.code.value : diagnostic.code);

async function set(name, value) {
  await vscode.workspace.getConfiguration("shapelens").update(name, value, vscode.ConfigurationTarget.Workspace);
}

describe("through the vscode API", () => {
  afterEach(async () => {
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  });

  it("the extension is installed and becomes active", async () => {
    const extension = vscode.extensions.getExtension("shapelens.shapelens");
    assert.ok(extension, "not installed");
    await open("recipe.py");
    await eventually(() => extension.isActive);
  });

  it("inlay hints are the shapes of the recipe network", async () => {
    const document = await open("recipe.py");
    await eventually(async () => (await hintAt(document, "x = self.fc3(x)")) === "→ [B, 10]");
    assert.equal(await hintAt(document, "nn.Conv2d(3, 6, 5)"), "→ [B, 6, 28, 28]");
    assert.equal(await hintAt(document, "nn.MaxPool2d(2, 2)"), "→ [B, 6, 14, 14] | [B, 16, 5, 5]");
    assert.equal(await hintAt(document, "def forward"), "x: [B, 3, 32, 32]");
    assert.equal((await hints(document)).size, 13); // `return x` passes the last one on.
    assert.deepEqual(ours(document), []);
  });

  it("a diagnostic has range, code, severity and a related location", async () => {
    const document = await open("wrong_in_features.py");
    const [diagnostic] = await eventually(() => ours(document).length === 1 && ours(document));
    assert.deepEqual(diagnostic.range, rangeOf(document, "16 * 6 * 6"));
    assert.equal(codeOf(diagnostic), "linear-in-features");
    assert.equal(diagnostic.severity, vscode.DiagnosticSeverity.Error);
    assert.match(diagnostic.message, /fc1 gets 400 features .* but in_features is 576/);
    const lines = diagnostic.relatedInformation.map((related) => related.location.range.start.line);
    assert.ok(lines.includes(rangeOf(document, "self.fc1(x)").start.line), `the call in forward is among the related locations: ${lines}`);
  });

  it("a code action changes exactly the wrong number", async () => {
    const document = await open("wrong_in_features.py");
    await eventually(() => ours(document).length === 1);
    const before = document.getText();
    const range = rangeOf(document, "16 * 6 * 6");
    const actions = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", document.uri, range, vscode.CodeActionKind.QuickFix.value, 10);
    const action = actions.find((action) => /16 \* 5 \* 5/.test(action.title));
    assert.ok(action, actions.map((action) => action.title).join());
    assert.equal(action.isPreferred, true);
    assert.ok(await vscode.workspace.applyEdit(action.edit));
    assert.equal(document.getText(), before.replace("16 * 6 * 6", "16 * 5 * 5"));
    await eventually(() => ours(document).length === 0);
  });

  it("a hover tells of the layer", async () => {
    const document = await open("recipe.py");
    const position = rangeOf(document, "self.conv1(x)", "conv1").start;
    const text = await eventually(async () => {
      const hovers = await vscode.commands.executeCommand("vscode.executeHoverProvider", document.uri, position);
      return hovers.flatMap((hover) => hover.contents).map((content) => content.value ?? content).find((value) => value.includes("456"));
    });
    assert.match(text, /\[B, 3, 32, 32\]/);
    assert.match(text, /\[B, 6, 28, 28\]/);
  });

  it("a code lens carries the example and the parameter count", async () => {
    const document = await open("recipe.py");
    const lens = await eventually(async () => {
      const lenses = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", document.uri, 10);
      return lenses.find((lens) => /62.006 parameters/.test(lens.command?.title ?? ""));
    });
    assert.equal(lens.command.command, "shapelens.exampleActions");
    assert.deepEqual(lens.command.arguments, [document.uri.toString(), "Net", "Net()(f32[B:1024, 3, 32, 32])", ["set", "show"]]);
    assert.equal(lens.command.tooltip, "Net()(f32[B:1024, 3, 32, 32])");
  });

  it("settings take effect without a restart", async () => {
    const document = await open("recipe.py");
    await eventually(async () => (await hintAt(document, "x = self.fc3(x)")) === "→ [B, 10]");
    try {
      await set("dims", "numbers");
      await eventually(async () => (await hintAt(document, "x = self.fc3(x)")) === "→ [1024, 10]");
      await set("hints.values", false);
      await eventually(async () => (await hintAt(document, "x = self.fc3(x)")) === undefined);
      assert.equal(await hintAt(document, "nn.Conv2d(3, 6, 5)"), "→ [1024, 6, 28, 28]");
      await set("hints.parameters", false);
      await eventually(async () => (await hintAt(document, "def forward")) === undefined);
      await set("hints.layers", false);
      await eventually(async () => (await hints(document)).size === 0);
    } finally {
      for (const name of ["dims", "hints.values", "hints.parameters", "hints.layers"]) await set(name, undefined);
    }
    await eventually(async () => (await hintAt(document, "x = self.fc3(x)")) === "→ [B, 10]");
  });

  it("ignored codes and changed severities are followed", async () => {
    const document = await open("wrong_in_features.py");
    await eventually(() => ours(document).length === 1);
    try {
      await set("findings.severity", { "linear-in-features": "warning" });
      await eventually(() => ours(document)[0]?.severity === vscode.DiagnosticSeverity.Warning);
      await set("ignore", ["linear-in-features"]);
      await eventually(() => ours(document).length === 0);
    } finally {
      await set("findings.severity", undefined);
      await set("ignore", undefined);
    }
    await eventually(() => ours(document)[0]?.severity === vscode.DiagnosticSeverity.Error);
  });

  it("an example from the settings is run for a file without a directive", async () => {
    const document = await open("no_directive.py");
    try {
      await set("examples", { "no_directive.py": ["Net()(f32[N:5, 3, 32, 32])"] });
      await eventually(async () => (await hintAt(document, "x = self.fc3(x)")) === "→ [N, 10]");
    } finally {
      await set("examples", undefined);
    }
  });
});
