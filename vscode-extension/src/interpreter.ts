// Which interpreter runs the user's code, and when that changes.
import type { PythonEnvironmentApi } from '@vscode/python-environments';
import type { PythonExtension } from '@vscode/python-extension';
import * as vscode from 'vscode';
import type { Log } from './log.ts';
import { expand, inWorkspace, locate, pythonOnPath, type Folder } from './pythonPaths.ts';

const ENVIRONMENTS_EXTENSION = 'ms-python.vscode-python-envs';
const PYTHON_EXTENSION = 'ms-python.python';
/** A Python extension that is still looking for environments must not keep hints away; its answer is used when it comes. */
const PATIENCE_MS = 10_000;

export interface Interpreter {
    readonly path: string;
    /** Where it came from, in the user's words. */
    readonly from: string;
}

/** Finds the interpreter; `current` is undefined where there is none, and `problem` says why. */
export class Interpreters implements vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<Interpreter | undefined>();
    private readonly subscriptions: vscode.Disposable[] = [this.changed];
    private readonly followed = new Set<string>();
    private looking: Promise<void> | undefined;
    private again = false;
    readonly onDidChange = this.changed.event;
    current: Interpreter | undefined;
    problem: string | undefined;

    private readonly log: Log;

    constructor(log: Log) {
        this.log = log;
        this.subscriptions.push(
            vscode.workspace.onDidChangeConfiguration((event) => {
                if (event.affectsConfiguration('shapelens.interpreter') || event.affectsConfiguration('python.useEnvironmentsExtension')) {
                    void this.look();
                }
            }),
            vscode.workspace.onDidChangeWorkspaceFolders(() => void this.look()),
            vscode.extensions.onDidChange(() => void this.look()),
        );
        // A virtual environment that is made or removed while the editor is open. `pyvenv.cfg` is the file that makes a folder one.
        const environments = vscode.workspace.createFileSystemWatcher('**/{.venv,venv}/pyvenv.cfg', false, true, false);
        environments.onDidCreate(() => void this.look());
        environments.onDidDelete(() => void this.look());
        this.subscriptions.push(environments);
    }

    /** Look for the interpreter now; tells `onDidChange` if it is another than before. Calls while one is under way become one more look. */
    async look(): Promise<void> {
        if (this.looking) {
            this.again = true;
            return this.looking;
        }
        this.looking = (async () => {
            try {
                do {
                    this.again = false;
                    await this.lookOnce();
                } while (this.again);
            } finally {
                // In the same turn as the check above, so that no call is lost between the two.
                this.looking = undefined;
            }
        })();
        return this.looking;
    }

    dispose(): void {
        vscode.Disposable.from(...this.subscriptions).dispose();
    }

    private async lookOnce(): Promise<void> {
        if (!vscode.workspace.isTrusted) {
            // Looking means activating other extensions, and everything found here will be run.
            return;
        }
        const before = this.current?.path;
        this.problem = undefined;
        this.current = await this.find();
        if (this.current?.path !== before) {
            this.log.info(this.current ? `interpreter: ${this.current.path} (${this.current.from})` : (this.problem ?? 'no interpreter'));
            this.changed.fire(this.current);
        }
    }

    private async find(): Promise<Interpreter | undefined> {
        const folders = workspaceFolders();
        const setting = vscode.workspace.getConfiguration('shapelens').get<string>('interpreter', '').trim();
        if (setting) {
            const expanded = expand(setting, folders);
            const path = locate(expanded);
            if (path) {
                return { path, from: 'setting shapelens.interpreter' };
            }
            // Falling back here would show shapes made by another torch than the one that was asked for.
            this.problem = `shapelens.interpreter names ${expanded}, where there is no Python interpreter.`;
            return undefined;
        }
        const scope = vscode.workspace.workspaceFolders?.[0]?.uri;
        for (const ask of [() => this.fromEnvironmentsExtension(scope), () => this.fromPythonExtension(scope)]) {
            const found = await this.withPatience(ask);
            if (found) {
                return found;
            }
        }
        const inFolder = inWorkspace(folders);
        if (inFolder) {
            return { path: inFolder, from: 'virtual environment in the workspace' };
        }
        const onPath = pythonOnPath();
        if (onPath) {
            return { path: onPath, from: 'PATH' };
        }
        this.problem = 'No Python interpreter was found. Set shapelens.interpreter to the one that has torch.';
        return undefined;
    }

    private async fromEnvironmentsExtension(scope: vscode.Uri | undefined): Promise<Interpreter | undefined> {
        const extension = vscode.extensions.getExtension<PythonEnvironmentApi>(ENVIRONMENTS_EXTENSION);
        if (!extension || vscode.workspace.getConfiguration('python').get('useEnvironmentsExtension') === false) {
            return undefined;
        }
        const api = await extension.activate();
        this.follow(ENVIRONMENTS_EXTENSION, api?.onDidChangeEnvironment);
        const environment = await api?.getEnvironment(scope);
        const path = environment && locate(environment.execInfo.run.executable);
        return path ? { path, from: `Python Environments extension: ${environment.displayName}` } : undefined;
    }

    private async fromPythonExtension(scope: vscode.Uri | undefined): Promise<Interpreter | undefined> {
        const extension = vscode.extensions.getExtension<PythonExtension>(PYTHON_EXTENSION);
        if (!extension) {
            return undefined;
        }
        const api = await extension.activate();
        this.follow(PYTHON_EXTENSION, api?.environments.onDidChangeActiveEnvironmentPath);
        const environment = await api?.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(scope));
        const path = environment?.executable.uri?.fsPath;
        return path ? { path, from: 'Python extension' } : undefined;
    }

    private async withPatience(ask: () => Promise<Interpreter | undefined>): Promise<Interpreter | undefined> {
        let timer: NodeJS.Timeout | undefined;
        let late = false;
        const patience = new Promise<undefined>((resolve) => {
            timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
            timer.unref();
        });
        const asked = ask().catch((error: unknown) => {
            this.log.warn(`the Python extension could not say which interpreter is active: ${String(error)}`);
            return undefined;
        });
        void asked.then((found) => {
            if (late && found) {
                void this.look();
            }
        });
        const found = await Promise.race([asked, patience]);
        clearTimeout(timer);
        late = found === undefined;
        return found;
    }

    private follow(name: string, changed: vscode.Event<never> | vscode.Event<unknown> | undefined): void {
        if (changed && !this.followed.has(name)) {
            this.followed.add(name);
            this.subscriptions.push((changed as vscode.Event<unknown>)(() => void this.look()));
        }
    }
}

/** The folders of the workspace that lie on this machine's disk. */
export function workspaceFolders(): Folder[] {
    const folders = vscode.workspace.workspaceFolders ?? [];
    return folders.filter((folder) => folder.uri.scheme === 'file').map((folder) => ({ name: folder.name, path: folder.uri.fsPath }));
}
