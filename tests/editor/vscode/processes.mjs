// The processes that the extension started: the language server and its worker.
import { execFileSync } from "node:child_process";

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
const isServer = (row) => /launch\.py|shapelens(\s|["'])+lsp|-m shapelens/.test(row.command) && !isWorker(row);

/** The language server's process below `ancestor`. Throws unless there is exactly one. */
export function languageServer(ancestor) {
  const all = descendants(ancestor);
  // A launcher may stay around above the server: the innermost one serves.
  const found = all.filter(isServer).filter((row) => !all.some((other) => isServer(other) && other.parent === row.pid));
  if (found.length !== 1) throw new Error(`expected one language server, found ${JSON.stringify(found)} in ${JSON.stringify(all, null, 1)}`);
  return found[0];
}

/** Every language server and worker below `ancestor`. */
export function shapelensProcesses(ancestor) {
  return descendants(ancestor).filter((row) => isWorker(row) || isServer(row));
}

/** The worker that the server started; the children that it forked are left out. Throws unless there is exactly one. */
export function worker(ancestor) {
  const server = languageServer(ancestor);
  const found = descendants(server.pid).filter((row) => isWorker(row) && row.parent === server.pid);
  if (found.length !== 1) throw new Error(`expected one worker, found ${JSON.stringify(found)}`);
  return found[0];
}
