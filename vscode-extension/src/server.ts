// The language server's process and the client that talks to it: started, followed, restarted one at a time.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import * as os from 'node:os';
import * as path from 'node:path';
import * as readline from 'node:readline';
import * as vscode from 'vscode';
import {
    CloseAction,
    ErrorAction,
    LanguageClient,
    RevealOutputChannelOn,
    State,
    StreamMessageReader,
    StreamMessageWriter,
    type CloseHandlerResult,
    type LanguageClientOptions,
    type MessageTransports,
} from 'vscode-languageclient/node';
import { workspaceFolders, type Interpreters } from './interpreter.ts';
import type { Log } from './log.ts';
import { askForPython, askForRestart, askForTorch } from './prompts.ts';
import { expand, locate, serverPythonsOnPath } from './pythonPaths.ts';
import { chooseServerPython, prober, type Choice } from './serverPython.ts';
import { settingsThatAreSet, withoutHints } from './settings.ts';
import { summaryText, type Summary } from './summaryText.ts';
import { PYTHON_DOCUMENTS, type Status, type StatusParams } from './status.ts';

/** More ends than this within WINDOW_MS, and the server stays down until the user says otherwise. */
const MOST_CRASHES = 4;
const WINDOW_MS = 3 * 60_000;
const DOCTOR_MS = 2 * 60_000;
/** `launch.py`'s exit status for "this interpreter cannot run the server": another start would end alike. */
const CANNOT_RUN = 3;

export class Server implements vscode.Disposable {
    private readonly subscriptions: vscode.Disposable[] = [];
    private readonly ran = new vscode.EventEmitter<void>();
    /** A run has ended: what was asked for before may be answered otherwise now. */
    readonly onDidRun = this.ran.event;
    private readonly analysed = new vscode.EventEmitter<void>();
    /** Something new is known of a document. */
    readonly onDidAnalyse = this.analysed.event;
    private client: LanguageClient | undefined;
    private process: ChildProcess | undefined;
    private lastWords = '';
    private hintsAreOff = false;
    private ends: number[] = [];
    private restarting: Promise<void> | undefined;
    private restartAgain = false;
    private stopped = false;

    private readonly extension: vscode.Extension<unknown>;
    private readonly log: Log;
    private readonly status: Status;
    private readonly interpreters: Interpreters;

    constructor(extension: vscode.Extension<unknown>, log: Log, status: Status, interpreters: Interpreters) {
        this.extension = extension;
        this.log = log;
        this.status = status;
        this.interpreters = interpreters;
        this.subscriptions.push(
            this.ran,
            this.analysed,
            interpreters.onDidChange((interpreter) => {
                status.setInterpreter(interpreter);
                if (this.client?.isRunning() && interpreter) {
                    this.sendSettings();
                    void this.client.sendNotification('shapelens/interpreter', { path: interpreter.path });
                } else {
                    void this.restart();
                }
            }),
            vscode.workspace.onDidChangeConfiguration((event) => {
                if (event.affectsConfiguration('shapelens.serverInterpreter')) {
                    void this.restart();
                } else if (event.affectsConfiguration('shapelens')) {
                    this.sendSettings();
                }
            }),
        );
    }

    /** Ask the running server to carry out one of its commands. Rejects with a clear message if it is not running. */
    async execute<T>(command: string, ...parameters: unknown[]): Promise<T> {
        if (!this.client?.isRunning()) {
            throw new Error(`ShapeLens is not running. ShapeLens: Show Log says why.`);
        }
        return this.client.sendRequest<T>('workspace/executeCommand', { command, arguments: parameters });
    }

    /** As `execute`, for what takes its time: the server ends it when the token says so. */
    async executeUntil<T>(token: vscode.CancellationToken, command: string, ...parameters: unknown[]): Promise<T> {
        if (!this.client?.isRunning()) {
            throw new Error(`ShapeLens is not running. ShapeLens: Show Log says why.`);
        }
        return this.client.sendRequest<T>('workspace/executeCommand', { command, arguments: parameters }, token);
    }

    /** Show no hints in this window, or those that the settings say again. */
    toggleHints(): void {
        this.hintsAreOff = !this.hintsAreOff;
        this.sendSettings();
        void vscode.window.setStatusBarMessage(this.hintsAreOff ? 'ShapeLens: hints are off in this window' : 'ShapeLens: hints are on', 3_000);
    }

    /** What is known of a document, in a few words. */
    async summaryOf(uri: vscode.Uri): Promise<string> {
        if (!this.client?.isRunning()) {
            return '';
        }
        const summary = await this.execute<Summary | null>('shapelens.summary', uri.toString());
        return summary ? summaryText(summary) : '';
    }

    /** Markdown that says what ShapeLens has and what it lacks, made by a process of its own: it works where the server does not. */
    async examine(): Promise<string> {
        const choice = await this.chooseServerPython();
        if (choice.python === undefined) {
            return `# ShapeLens\n\n✗ ${choice.problem ?? 'no Python that can run the server'}\n`;
        }
        const folder = workspaceFolders()[0]?.path ?? os.homedir();
        const interpreter = this.interpreters.current?.path;
        const parameters = ['-I', '-X', 'utf8', this.launcher(), '--doctor', folder, ...(interpreter ? [interpreter] : [])];
        return new Promise((resolve, reject) => {
            execFile(choice.python as string, parameters, { cwd: folder, windowsHide: true, timeout: DOCTOR_MS }, (error, stdout, stderr) => {
                if (error && !stdout) {
                    reject(new Error(`The doctor did not come to its end: ${stderr.trim().split('\n').pop() || error.message}`));
                } else {
                    resolve(stdout);
                }
            });
        });
    }

    /** Start the server, or stop it and start it again. Calls while one is under way become one more. */
    async restart(): Promise<void> {
        if (this.restarting) {
            this.restartAgain = true;
            return this.restarting;
        }
        this.restarting = (async () => {
            try {
                do {
                    this.restartAgain = false;
                    await this.stopClient();
                    if (!this.stopped) {
                        await this.startClient();
                    }
                } while (this.restartAgain);
            } finally {
                // In the same turn as the check above, so that no call is lost between the two.
                this.restarting = undefined;
            }
        })();
        return this.restarting;
    }

    /** Restart because the user says so: earlier crashes are forgiven. */
    async restartAfresh(): Promise<void> {
        this.ends = [];
        await this.interpreters.look();
        await this.restart();
    }

    async stop(): Promise<void> {
        this.stopped = true;
        await this.restarting;
        await this.stopClient();
    }

    dispose(): void {
        vscode.Disposable.from(...this.subscriptions).dispose();
    }

    private async startClient(): Promise<void> {
        if (!vscode.workspace.isTrusted) {
            return;
        }
        this.show({ state: 'starting', message: 'starting' });
        if (!this.interpreters.current) {
            const problem = this.interpreters.problem ?? 'No Python interpreter was found.';
            this.log.error(problem);
            this.show({ state: 'error', message: problem });
            void askForPython(problem, 'shapelens.interpreter');
            return;
        }
        const choice = await this.chooseServerPython();
        if (choice.python === undefined) {
            const problem = choice.problem ?? '';
            this.log.error(problem);
            this.show({ state: 'error', message: 'no Python that can run the server', detail: problem });
            void askForPython(problem, 'shapelens.serverInterpreter');
            return;
        }
        const client: LanguageClient = new QuietClient(
            'shapelens',
            'ShapeLens',
            () => this.spawn(choice.python as string),
            this.clientOptions(() => this.closed(client)),
        );
        client.onNotification('shapelens/status', (params: StatusParams) => this.follow(params));
        client.onNotification('shapelens/analysed', () => this.analysed.fire());
        client.onDidChangeState(({ newState }) => {
            void vscode.commands.executeCommand('setContext', 'shapelens.running', newState === State.Running);
            if (newState === State.Running) {
                // The server says more as soon as a Python file with a model is open.
                this.show({ state: 'idle', message: '' });
            }
        });
        this.client = client;
        try {
            await client.start();
        } catch (error) {
            // A process that ended has been dealt with in closed(); without one, `python` itself could not be started.
            if (this.process === undefined) {
                this.show({ state: 'error', message: 'the server did not start', detail: String(error) });
            }
        }
    }

    private async stopClient(): Promise<void> {
        const { client, process } = this;
        this.client = undefined;
        this.process = undefined;
        try {
            await client?.dispose(3_000);
        } catch (error) {
            this.log.debug(`the server did not stop in good order: ${String(error)}`);
        }
        // The server stops its workers when its input ends. What is still there then hangs, and is ended.
        if (process && (await exitOf(process, 2_000)) === undefined) {
            process.kill('SIGKILL');
        }
    }

    private chooseServerPython(): Promise<Choice> {
        const probe = prober(this.launcher());
        const setting = vscode.workspace.getConfiguration('shapelens').get<string>('serverInterpreter', '').trim();
        if (setting) {
            const expanded = expand(setting, workspaceFolders());
            const python = locate(expanded);
            return python === undefined
                ? Promise.resolve({ problem: `shapelens.serverInterpreter names ${expanded}, where there is no Python interpreter.` })
                : chooseServerPython(python, [], probe);
        }
        const candidates = [this.interpreters.current?.path, ...serverPythonsOnPath()].filter((candidate) => candidate !== undefined);
        return chooseServerPython(undefined, candidates, probe);
    }

    private launcher(): string {
        return path.join(this.extension.extensionPath, 'bundled', 'launch.py');
    }

    private spawn(python: string): Promise<MessageTransports> {
        const cwd = workspaceFolders()[0]?.path ?? os.homedir();
        // -I: nothing of the user's environment variables, user site or working directory gets into the server.
        const parameters = ['-I', '-X', 'utf8', this.launcher()];
        this.log.info(`server: ${[python, ...parameters].join(' ')}`);
        this.lastWords = '';
        return new Promise((resolve, reject) => {
            const child = spawn(python, parameters, { cwd, windowsHide: true, stdio: ['pipe', 'pipe', 'pipe'] });
            child.once('error', reject);
            child.once('spawn', () => {
                this.process = child;
                child.stdin.on('error', () => undefined);
                readline.createInterface({ input: child.stderr, crlfDelay: Infinity }).on('line', (line) => {
                    this.lastWords = line.trim() || this.lastWords;
                    this.log.info(line);
                });
                resolve({ reader: new StreamMessageReader(child.stdout), writer: new StreamMessageWriter(child.stdin) });
            });
        });
    }

    private clientOptions(closed: () => Promise<CloseHandlerResult>): LanguageClientOptions {
        return {
            documentSelector: PYTHON_DOCUMENTS as { language: string; scheme: string }[],
            outputChannel: this.log,
            revealOutputChannelOn: RevealOutputChannelOn.Never,
            initializationOptions: () => ({ interpreter: this.interpreters.current?.path ?? null, settings: this.settings() }),
            initializationFailedHandler: () => false,
            errorHandler: {
                error: () => ({ action: ErrorAction.Continue }),
                closed,
            },
            middleware: {
                workspace: {
                    configuration: (params, token, next) => this.configuration(params.items, () => next(params, token)),
                    // Sent by hand above, without the defaults.
                    didChangeConfiguration: () => Promise.resolve(),
                },
            },
        };
    }

    private async configuration(items: { section?: string; scopeUri?: string }[], next: () => unknown): Promise<unknown[]> {
        const answers = (await next()) as unknown[];
        return items.map((item, index) => (item.section === 'shapelens' ? this.settings(item.scopeUri) : answers[index]));
    }

    private sendSettings(): void {
        if (this.client?.isRunning()) {
            void this.client.sendNotification('workspace/didChangeConfiguration', { settings: { shapelens: this.settings() } });
        }
    }

    private settings(scope?: string): Record<string, unknown> {
        const said = settingsThatAreSet(this.extension, scope === undefined ? vscode.workspace.workspaceFolders?.[0] : vscode.Uri.parse(scope));
        const set = this.hintsAreOff ? withoutHints(said) : said;
        // The server knows neither `${env:NAME}` nor the folders' names, so it gets what the setting was found to mean.
        const path = this.interpreters.current?.path;
        return 'interpreter' in set && path ? { ...set, interpreter: set['interpreter'] ? path : '' } : set;
    }

    /** The connection ended without having been told to. It is for us to start again, so the client itself never does. */
    private async closed(client: LanguageClient): Promise<CloseHandlerResult> {
        const done = { action: CloseAction.DoNotRestart, message: 'The connection to the server has ended.', handled: true };
        if (client !== this.client || this.stopped) {
            return done;
        }
        const { process } = this;
        const status = process && (await exitOf(process, 1_000));
        this.log.error(`the server ${status === undefined ? 'closed its connection' : `ended (${status})`}`);
        process?.kill('SIGKILL');
        if (status === CANNOT_RUN) {
            this.show({ state: 'error', message: 'the server cannot run', detail: this.lastWords });
            void askForPython(this.lastWords, 'shapelens.serverInterpreter');
            return done;
        }
        const now = Date.now();
        this.ends = [...this.ends.filter((end) => now - end < WINDOW_MS), now];
        if (this.ends.length <= MOST_CRASHES) {
            void this.restart();
            return done;
        }
        const message = `the server stopped ${this.ends.length} times in three minutes`;
        this.show({ state: 'stopped', message, detail: this.lastWords });
        void askForRestart(`ShapeLens: ${message} and was not started again. ${this.lastWords}`);
        return done;
    }

    private follow(params: StatusParams): void {
        this.show(params);
        if (params.state === 'no-torch') {
            void askForTorch(params.message, params.detail ?? '');
        }
        if (params.state === 'idle') {
            this.ran.fire();
        }
    }

    private show(params: StatusParams): void {
        this.status.show(params);
    }
}

/** A client whose failures are told by the status item and the log; its own popups name nothing that a user could do. */
class QuietClient extends LanguageClient {
    override error(message: string, data?: unknown): void {
        super.error(message, data, false);
    }
}

/** The exit status or signal of a process, undefined if it is still running after `patience` milliseconds. */
async function exitOf(child: ChildProcess, patience: number): Promise<number | string | undefined> {
    if (child.exitCode === null && child.signalCode === null) {
        let timer: NodeJS.Timeout | undefined;
        await Promise.race([
            new Promise((resolve) => child.once('exit', resolve)),
            new Promise((resolve) => {
                timer = setTimeout(resolve, patience);
            }),
        ]);
        clearTimeout(timer);
    }
    return child.exitCode ?? child.signalCode ?? undefined;
}
