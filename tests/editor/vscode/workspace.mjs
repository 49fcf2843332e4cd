// Folders for VS Code to open: copies of the recipe fixtures, as a user would have them.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { repository } from "./paths.mjs";

/** The text of a recipe fixture: "recipe.py", "wrong_in_features.py". */
export function recipe(name) {
  return readFileSync(join(repository, "fixtures", "recipe", name), "utf8");
}

export class Workspace {
  /** @param {{[name: string]: string}} files texts by name; the recipe network and its wrong twin are always there. */
  constructor(files = {}) {
    this.parent = mkdtempSync(join(realpathSync(tmpdir()), "shapelens-workspace-"));
    this.folder = join(this.parent, "recipe");
    mkdirSync(this.folder);
    this.files = { "recipe.py": recipe("recipe.py"), "wrong_in_features.py": recipe("wrong_in_features.py"), ...files };
    for (const [name, text] of Object.entries(this.files)) this.write(name, text);
  }

  /** Whether all files are as they were at first. */
  isUnchanged() {
    return Object.entries(this.files).every(([name, text]) => this.read(name) === text);
  }

  path(name) {
    return join(this.folder, name);
  }

  read(name) {
    return readFileSync(this.path(name), "utf8");
  }

  write(name, text) {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), text, { mode: text.startsWith("#!") ? 0o755 : 0o644 });
  }

  /** Writes the workspace's settings. VS Code sees the change and follows it. */
  settings(settings) {
    this.write(".vscode/settings.json", JSON.stringify(settings, null, 2));
  }

  remove() {
    rmSync(this.parent, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}
