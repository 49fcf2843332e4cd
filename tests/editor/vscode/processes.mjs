// The processes that the extension started: the language server and its worker.
import { execFileSync } from "node:child_process";
import { readlinkSync } from "node:fs";

/** All processes below `ancestor`, as {pid, parent, command}. */
export function descendants(ancestor) {
  const rows = execFileSync("ps", ["-A", "-ww", "-o", "pid=,ppid=,args="], { encoding: "utf8", maxBuffer: 1 << 24 })
    .split("\n")
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter(Boolean)
    .map(([, pid, parent, command]) => ({ pid: Number(pid), parent: Number(parent), command }));
  const below = new Set([ancestor]);
  // ps gives no order that puts parents first, so this repeats until nothing is added.
  for (let size = 0; size !== below.size; ) {
    size = below.size;
    for (const row of rows) if (below.has(row.parent)) below.add(row.pid);
  }
  below.delete(ancestor);
  return rows.filter((row) => below.has(row.pid));
}

const isWorker = (row) => /shapelens[/\\]worker[/\\]__main__\.py/.test(row.command);
const isServer = (row) => /bundled[/\\]launch\.py/.test(row.command) && !/--probe/.test(row.command);

function workingDirectory(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return ""; // It has ended meanwhile.
  }
}

/** Every language server and worker below `ancestor`, whatever folder they serve. */
export function shapelensProcesses(ancestor) {
  return descendants(ancestor).filter((row) => isWorker(row) || isServer(row));
}

/** The language server of a workspace folder: the server's working directory is that folder. Throws unless there is exactly one. */
export function languageServer(ancestor, folder) {
  const found = descendants(ancestor).filter((row) => isServer(row) && workingDirectory(row.pid) === folder);
  if (found.length !== 1) throw new Error(`expected one language server, found ${JSON.stringify(found)}`);
  return found[0];
}

/** The worker of a workspace folder; the children that it forked are left out. Throws unless there is exactly one. */
export function worker(ancestor, folder) {
  const server = languageServer(ancestor, folder);
  const found = descendants(server.pid).filter((row) => isWorker(row) && row.parent === server.pid);
  if (found.length !== 1) throw new Error(`expected one worker, found ${JSON.stringify(found)}`);
  return found[0];
}
