// One code-server (VS Code in a browser) with the extension installed, its own home and its own settings.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { codeServerEntry, codeServerNode, olderCodeServer } from "./paths.mjs";

const START_DEADLINE = 180_000; // ms
/** Names the folder of extensions that all code-servers of a run share. */
const SHARED_EXTENSIONS = "SHAPELENS_TEST_EXTENSIONS";

const USER_SETTINGS = {
  "workbench.editor.useModal": "off",
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "workbench.colorTheme": "Default Light Modern",
  "security.workspace.trust.startupPrompt": "never",
  "security.workspace.trust.banner": "never",
  "files.autoSave": "off",
  "chat.disableAIFeatures": true,
  "editor.hover.delay": 100,
  "editor.minimap.enabled": false,
  "editor.fontFamily": "'DejaVu Sans Mono', monospace",
  "editor.wordBasedSuggestions": "off",
  "git.enabled": false,
  "telemetry.telemetryLevel": "off",
  "extensions.ignoreRecommendations": true,
};

/** A free TCP port of the loopback interface. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** What code-server is started with: no gallery, which would be asked for updates, and a home that keeps the tester's own settings out. */
function environment(home) {
  const own = {
    ...process.env, EXTENSIONS_GALLERY: "{}", HOME: home, XDG_CONFIG_HOME: join(home, "config"), XDG_DATA_HOME: join(home, "data"), XDG_CACHE_HOME: join(home, "cache"),
  };
  // These would reach the worker and make it differ from a user's.
  for (const name of ["VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "NODE_OPTIONS", "NODE_TEST_CONTEXT"]) delete own[name];
  return own;
}

/** @throws when the .vsix cannot be installed within a minute. */
function install(vsix, { home, userData, extensions }) {
  const args = [codeServerEntry, "--user-data-dir", userData, "--extensions-dir", extensions, "--install-extension", vsix];
  const done = spawnSync(codeServerNode, args, { env: environment(home), encoding: "utf8", timeout: START_DEADLINE });
  if (done.status !== 0) throw new Error(`${vsix} cannot be installed:\n${done.stdout}${done.stderr}`);
}

const removeFolder = (folder) => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });

/** Installs a .vsix once for all code-servers that this process and those below it start, and hands back what removes it again. */
export function shareExtension(vsix) {
  const home = mkdtempSync(join(realpathSync(tmpdir()), "shapelens-extensions-"));
  const extensions = join(home, "extensions");
  try {
    install(vsix, { home, userData: join(home, "user-data"), extensions });
  } catch (error) {
    removeFolder(home);
    throw error;
  }
  process.env[SHARED_EXTENSIONS] = extensions;
  return () => removeFolder(home);
}

export class CodeServer {
  #process;
  #onExit = () => this.#killGroup("SIGKILL");

  /**
   * Starts code-server in fresh folders and waits until it answers.
   * @param {{vsix?: string, settings?: object, machine?: object, trust?: "granted" | "asked", options?: string[], port?: number}} options
   *   vsix: what is installed first, unless `shareExtension` has done so for all.
   *   machine: the settings of this machine; those with a machine's scope (interpreters) count only there, as on any remote.
   *   trust "granted" switches workspace trust off; "asked" leaves new folders restricted.
   * @throws when the .vsix cannot be installed or code-server does not answer within a minute.
   */
  static async start({ vsix, settings = {}, machine = {}, trust = "granted", options = [], port } = {}) {
    const server = new CodeServer();
    server.home = mkdtempSync(join(realpathSync(tmpdir()), "shapelens-vscode-"));
    server.userData = join(server.home, "user-data");
    server.extensions = process.env[SHARED_EXTENSIONS] ?? join(server.home, "extensions");
    mkdirSync(server.extensions, { recursive: true });
    for (const [place, chosen] of [["User", { ...USER_SETTINGS, ...settings }], ["Machine", machine]]) {
      mkdirSync(join(server.userData, place), { recursive: true });
      writeFileSync(join(server.userData, place, "settings.json"), JSON.stringify(chosen, null, 2));
    }
    try {
      if (vsix && !process.env[SHARED_EXTENSIONS]) install(vsix, server);
    } catch (error) {
      await server.stop();
      throw error;
    }
    server.port = port ?? (await freePort());
    server.logFile = join(server.home, "code-server.log");
    const log = openSync(server.logFile, "a");
    const args = [
      codeServerEntry, "--auth", "none", "--bind-addr", `127.0.0.1:${server.port}`, "--disable-telemetry", "--disable-update-check",
      "--disable-getting-started-override", "--ignore-last-opened", ...(olderCodeServer ? [] : ["--reconnection-grace-time", "2"]),
      "--user-data-dir", server.userData, "--extensions-dir", server.extensions,
      ...(trust === "granted" ? ["--disable-workspace-trust"] : []), ...options,
    ];
    // A process group of its own, so that stopping it also stops the extension hosts and what they started.
    server.#process = spawn(codeServerNode, args, { detached: true, stdio: ["ignore", log, log], env: environment(server.home), cwd: server.home });
    process.once("exit", server.#onExit);
    try {
      await server.#answers();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** Address that opens a folder, and a file of it. Both are absolute paths; `more` is added to the payload. */
  url(folder, file, more = []) {
    const payload = [...more];
    if (file) payload.unshift(["openFile", this.remote(file)]);
    const query = new URLSearchParams({ folder });
    if (payload.length) query.set("payload", JSON.stringify(payload));
    return `http://127.0.0.1:${this.port}/?${query}`;
  }

  remote(path) {
    return `vscode-remote://127.0.0.1:${this.port}${path}`;
  }

  get pid() {
    return this.#process.pid;
  }

  /** The logs of the extension hosts, joined: what a failed flow needs to be understood. */
  extensionLogs() {
    const logs = join(this.userData, "logs");
    if (!existsSync(logs)) return "";
    const files = readdirSync(logs, { recursive: true }).filter((name) => /exthost.*\.log$/.test(name) && /shapelens/i.test(name));
    return files.map((name) => `--- ${name}\n${readFileSync(join(logs, name), "utf8")}`).join("\n");
  }

  /** Keeps code-server's own log and the extension's under `folder`. */
  keepLogs(folder) {
    mkdirSync(folder, { recursive: true });
    cpSync(this.logFile, join(folder, "code-server.log"));
    writeFileSync(join(folder, "extension.log"), this.extensionLogs());
  }

  /** Stops the whole process group and removes its folders. */
  async stop() {
    process.removeListener("exit", this.#onExit);
    if (this.#process && this.#process.exitCode === null && this.#process.signalCode === null) {
      const ended = new Promise((resolve) => this.#process.once("exit", resolve));
      // Asked to end, it waits for its extension hosts; there is nothing that they would have to save.
      this.#killGroup("SIGKILL");
      await ended;
    }
    removeFolder(this.home);
  }

  async #answers() {
    const deadline = Date.now() + START_DEADLINE;
    while (Date.now() < deadline) {
      if (this.#process.exitCode !== null) break;
      try {
        if ((await fetch(`http://127.0.0.1:${this.port}/healthz`)).ok) return;
      } catch {
        // It does not listen yet.
      }
      await sleep(100);
    }
    throw new Error(`code-server does not answer:\n${readFileSync(this.logFile, "utf8")}`);
  }

  #killGroup(signal) {
    if (!this.#process?.pid) return;
    try {
      process.kill(-this.#process.pid, signal);
    } catch {
      // The group has ended.
    }
  }
}
