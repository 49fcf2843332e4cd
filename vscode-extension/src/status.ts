// What ShapeLens is doing and what it knows of the file, in the status bar and among the language's status items. A click opens the menu.
import * as vscode from 'vscode';
import type { Interpreter } from './interpreter.ts';

/** The states that the server tells, and three that it cannot tell itself. */
export type State = 'starting' | 'idle' | 'running' | 'error' | 'no-torch' | 'untrusted' | 'stopped';

export interface StatusParams {
    readonly state: State;
    /** One line. */
    readonly message: string;
    /** More, for the tooltip. */
    readonly detail?: string;
}

/** What is said where the server has nothing to add. */
const WORDS: Record<State, string> = {
    starting: 'starting',
    running: 'running',
    idle: 'ready',
    untrusted: 'not trusted',
    stopped: 'stopped',
    'no-torch': 'torch is missing',
    error: 'error',
};

const LOOKS: Record<State, { icon: string; busy: boolean; severity: vscode.LanguageStatusSeverity }> = {
    starting: { icon: 'loading~spin', busy: true, severity: vscode.LanguageStatusSeverity.Information },
    running: { icon: 'loading~spin', busy: true, severity: vscode.LanguageStatusSeverity.Information },
    idle: { icon: 'symbol-ruler', busy: false, severity: vscode.LanguageStatusSeverity.Information },
    untrusted: { icon: 'shield', busy: false, severity: vscode.LanguageStatusSeverity.Information },
    stopped: { icon: 'circle-slash', busy: false, severity: vscode.LanguageStatusSeverity.Error },
    'no-torch': { icon: 'warning', busy: false, severity: vscode.LanguageStatusSeverity.Error },
    error: { icon: 'warning', busy: false, severity: vscode.LanguageStatusSeverity.Error },
};

export const PYTHON_DOCUMENTS: vscode.DocumentFilter[] = [
    { language: 'python', scheme: 'file' },
    { language: 'python', scheme: 'untitled' },
    { language: 'python', scheme: 'vscode-notebook-cell' },
];

export class Status implements vscode.Disposable {
    private readonly item = vscode.languages.createLanguageStatusItem('shapelens.status', PYTHON_DOCUMENTS);
    private readonly bar = vscode.window.createStatusBarItem('shapelens.statusBar', vscode.StatusBarAlignment.Right, 90);
    private readonly watching: vscode.Disposable;
    private interpreter: Interpreter | undefined;
    private last: StatusParams = { state: 'stopped', message: 'not started' };
    private summary = '';

    constructor() {
        this.item.name = 'ShapeLens';
        this.bar.name = 'ShapeLens';
        this.watching = vscode.window.onDidChangeActiveTextEditor(() => this.showOrHide());
        this.showOrHide();
    }

    get state(): State {
        return this.last.state;
    }

    show(params: StatusParams): void {
        this.last = params;
        this.draw();
    }

    setInterpreter(interpreter: Interpreter | undefined): void {
        this.interpreter = interpreter;
        this.draw();
    }

    /** What is known of the file in the active editor, in a few words; "" for nothing. */
    setSummary(summary: string): void {
        if (summary !== this.summary) {
            this.summary = summary;
            this.draw();
        }
    }

    dispose(): void {
        vscode.Disposable.from(this.item, this.bar, this.watching).dispose();
    }

    private draw(): void {
        const { state, detail } = this.last;
        const message = this.last.message || WORDS[state];
        const look = LOOKS[state];
        const trust = state === 'untrusted';
        const command = { title: trust ? 'Manage Trust' : 'Show Log', command: trust ? 'workbench.trust.manage' : 'shapelens.showLog' };

        this.item.text = `ShapeLens: ${message}`;
        this.item.detail = detail ?? '';
        this.item.severity = look.severity;
        this.item.busy = look.busy;
        this.item.command = command;

        const wrong = look.severity === vscode.LanguageStatusSeverity.Error;
        // What is known of the file stays while it runs again; an error is more important.
        const summary = wrong || trust ? '' : this.summary;
        this.bar.text = `$(${look.icon}) ${summary || 'ShapeLens'}`;
        this.bar.command = trust ? command.command : 'shapelens.menu';
        this.bar.backgroundColor = wrong ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
        this.bar.accessibilityInformation = { label: `ShapeLens: ${[message, summary].filter(Boolean).join(', ')}` };
        this.bar.tooltip = this.tooltip(message, detail);
    }

    private tooltip(message: string, detail: string | undefined): vscode.MarkdownString {
        const text = new vscode.MarkdownString(undefined, true);
        text.isTrusted = { enabledCommands: ['shapelens.restart', 'shapelens.showLog', 'shapelens.doctor', 'shapelens.selectInterpreter', 'workbench.trust.manage'] };
        text.appendMarkdown('**ShapeLens** ').appendText(message);
        // The server's detail often is the interpreter, which has a line of its own.
        if (detail && detail !== this.interpreter?.path) {
            text.appendMarkdown('\n\n').appendText(detail);
        }
        if (this.interpreter) {
            text.appendMarkdown('\n\nInterpreter: ').appendText(`${this.interpreter.path} (${this.interpreter.from})`);
        }
        text.appendMarkdown('\n\n---\n\n');
        text.appendMarkdown(
            this.last.state === 'untrusted'
                ? '[$(shield) Manage trust](command:workbench.trust.manage)'
                : '[$(output) Show log](command:shapelens.showLog) · [$(pulse) Doctor](command:shapelens.doctor) · [$(debug-restart) Restart](command:shapelens.restart) · [$(snake) Select interpreter](command:shapelens.selectInterpreter)',
        );
        return text;
    }

    private showOrHide(): void {
        const document = vscode.window.activeTextEditor?.document;
        if (document && vscode.languages.match(PYTHON_DOCUMENTS, document)) {
            this.bar.show();
        } else if (document) {
            // No text editor at all (the focus is in the output, say) leaves the item as it is.
            this.bar.hide();
        }
    }
}
