// `make vscode`: the recipe network in a real VS Code in the browser, with the extension installed, until Ctrl-C.
import { spawn } from "node:child_process";
import { CodeServer } from "./vscode/code_server.mjs";
import { pythonWithTorch, vsix } from "./vscode/paths.mjs";
import { Workspace } from "./vscode/workspace.mjs";

/** The command that opens an address on this desktop, or undefined where there is none. */
function opener() {
  if (process.platform === "darwin") return "open";
  return process.env.DISPLAY || process.env.WAYLAND_DISPLAY ? "xdg-open" : undefined;
}

async function main() {
  // A copy: what is tried out there leaves the fixtures as they are.
  const workspace = new Workspace();
  let codeServer;
  const stop = async () => {
    await codeServer?.stop();
    workspace.remove();
    process.exit(0);
  };
  try {
    codeServer = await CodeServer.start({ vsix: vsix(), machine: { "shapelens.interpreter": pythonWithTorch() } });
  } catch (error) {
    workspace.remove();
    throw error;
  }
  const url = codeServer.url(workspace.folder, workspace.path("recipe.py"));
  console.log(`\nVS Code with ShapeLens, on a copy of the recipe network:\n\n  ${url}\n\nwrong_in_features.py beside it has a wrong number to repair. Ctrl-C ends it.`);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, stop);
  const command = opener();
  // Without a desktop, or without the command, the address above is enough.
  if (command) spawn(command, [url], { stdio: "ignore", detached: true }).on("error", () => {}).unref();
  // The code-server process keeps no handle open here; this one does until a signal comes.
  setInterval(() => {}, 1 << 30);
}

main().catch((error) => {
  console.error(`make vscode: ${error.message}`);
  process.exit(1);
});
