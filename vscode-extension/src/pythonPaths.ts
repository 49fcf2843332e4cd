// Where Python interpreters lie. Nothing here knows VS Code, so that it can be tested without it.
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

/** A workspace folder, as far as paths are concerned. */
export interface Folder {
    readonly name: string;
    readonly path: string;
}

const onWindows = process.platform === 'win32';
const PYTHON_IN_ENVIRONMENT = onWindows ? ['Scripts/python.exe', 'python.exe'] : ['bin/python', 'bin/python3'];
const PYTHON_ON_PATH = onWindows ? ['python.exe', 'python3.exe'] : ['python3', 'python'];
const SERVER_PYTHON_ON_PATH = onWindows ? PYTHON_ON_PATH : ['python3', 'python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10', 'python'];

/**
 * The text of a path setting with `~`, `${workspaceFolder}`, `${workspaceFolder:NAME}`, `${userHome}` and `${env:NAME}` replaced.
 * A path with a slash that is not absolute is taken from the first workspace folder; a bare name is left as it is.
 */
export function expand(setting: string, folders: readonly Folder[], environment: NodeJS.ProcessEnv = process.env): string {
    const first = folders[0]?.path ?? '';
    let text = setting.trim().replace(/\$\{(\w+)(?::([^}]*))?\}/g, (whole, name: string, argument: string | undefined) => {
        switch (name) {
            case 'workspaceFolder':
                return argument === undefined ? first : (folders.find((folder) => folder.name === argument)?.path ?? whole);
            case 'userHome':
                return os.homedir();
            case 'env':
                return environment[argument ?? ''] ?? '';
            default:
                return whole;
        }
    });
    if (text === '~' || text.startsWith('~/') || text.startsWith('~\\')) {
        text = path.join(os.homedir(), text.slice(1));
    }
    if (/[\\/]/.test(text) && !path.isAbsolute(text) && first) {
        text = path.join(first, text);
    }
    return text;
}

/** The interpreter that an expanded setting means: a file, a folder with an environment in it, or a name on PATH. Undefined if there is none. */
export function locate(expanded: string, environment: NodeJS.ProcessEnv = process.env): string | undefined {
    if (!/[\\/]/.test(expanded)) {
        return onPath([expanded, ...(onWindows ? [`${expanded}.exe`] : [])], environment)[0];
    }
    if (isFile(expanded)) {
        return expanded;
    }
    return inEnvironment(expanded);
}

/** The interpreter of `.venv` or `venv` in the first folder that has one. */
export function inWorkspace(folders: readonly Folder[]): string | undefined {
    for (const folder of folders) {
        for (const name of ['.venv', 'venv']) {
            const found = inEnvironment(path.join(folder.path, name));
            if (found) {
                return found;
            }
        }
    }
    return undefined;
}

/** The interpreter that `python3` means in a terminal. */
export function pythonOnPath(environment: NodeJS.ProcessEnv = process.env): string | undefined {
    return onPath(PYTHON_ON_PATH, environment)[0];
}

/** All interpreters on PATH that may be able to run the server, the likeliest first. */
export function serverPythonsOnPath(environment: NodeJS.ProcessEnv = process.env): string[] {
    return onPath(SERVER_PYTHON_ON_PATH, environment);
}

function inEnvironment(folder: string): string | undefined {
    return PYTHON_IN_ENVIRONMENT.map((name) => path.join(folder, name)).find(isFile);
}

function onPath(names: readonly string[], environment: NodeJS.ProcessEnv): string[] {
    const folders = (environment['PATH'] ?? environment['Path'] ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder));
    const found = names.flatMap((name) => folders.map((folder) => path.join(folder, name)).filter(isFile));
    return [...new Set(found)];
}

function isFile(candidate: string): boolean {
    try {
        // The Microsoft Store's `python.exe` stands for "not installed" and is an empty file.
        const stat = fs.statSync(candidate);
        return stat.isFile() && stat.size > 0;
    } catch {
        return false;
    }
}
