// The model as a whole, in the secondary side bar or else beside the editor: it shows the class at the cursor, and follows cursor and edits.
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Server } from './server.ts';

/** A place in a file: 1-based lines, 0-based columns in code points. */
type Place = { file: string; line: number; column: number; end_line: number; end_column: number };
type Options = { sizes?: Record<string, number>; optimizer?: string; device?: string; autocast?: string; example?: number; format?: string; amounts?: string; until?: 'shapes' | 'steps'; memory?: string; limit?: number };
type Answer = { version: number; model?: { file: string; class: string; complete: boolean }; memory?: unknown; largest?: number | null; message?: string; without_example?: string; text?: string } | null;
/** What the view says. */
type Said =
    | { type: 'ready' | 'options' | 'memory'; options: Options }
    | { type: 'reveal'; place: Place }
    | { type: 'fix'; place: Place; title: string | null }
    | { type: 'markdown'; amounts: string }
    | { type: 'example'; class: string }
    | { type: 'save'; kind: 'html' | 'svg' | 'png'; content?: string };

/** The view's id, in package.json as well. */
const VIEW = 'shapelens.model';
/** Where the page is: a view, which people move where they like, or a panel beside the editor. */
type Home = vscode.WebviewView | vscode.WebviewPanel;
/** While the cursor moves on, no other class is asked for. */
const CURSOR_MS = 150;
/** The scheme of a notebook's cells: the places of these are by their URI. */
const CELL = 'vscode-notebook-cell';

export class ModelView implements vscode.WebviewViewProvider, vscode.Disposable {
    private readonly subscriptions: vscode.Disposable;
    private home: Home | undefined;
    private source: vscode.Uri | undefined;
    private line = 1;
    /** The class that is shown; "" for the one at the line. */
    private shown = '';
    /** What the page shows: the class, and its document. */
    private told: { source: string; class: string } | undefined;
    private options: Options = {};
    private asked = 0;
    private moved: NodeJS.Timeout | undefined;

    private readonly server: Server;
    private readonly folder: vscode.Uri;

    constructor(server: Server, extension: vscode.Extension<unknown>) {
        this.server = server;
        this.folder = vscode.Uri.joinPath(extension.extensionUri, 'bundled', 'server', 'shapelens', 'report', 'view');
        this.subscriptions = vscode.Disposable.from(
            server.onDidAnalyse(() => void this.update()),
            vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.follow(textEditor)),
            vscode.window.onDidChangeActiveTextEditor((editor) => editor && this.follow(editor)),
            { dispose: () => clearTimeout(this.moved) },
            ...(hasSecondarySideBar() ? [vscode.window.registerWebviewViewProvider(VIEW, this, { webviewOptions: { retainContextWhenHidden: true } })] : []),
        );
        // Without it the view is hidden: an older VS Code would put it among the files.
        void vscode.commands.executeCommand('setContext', 'shapelens.secondarySideBar', hasSecondarySideBar());
    }

    /** Open the view for a class of a document: the one that is named, else the one at the cursor. */
    async show(source: vscode.Uri, line: number, className = ''): Promise<void> {
        this.source = source;
        this.line = line;
        this.shown = className;
        this.told = undefined;
        if (hasSecondarySideBar()) {
            await vscode.commands.executeCommand(`${VIEW}.focus`, { preserveFocus: true });
        } else if (this.home && 'reveal' in this.home) {
            this.home.reveal(undefined, true);
        } else {
            const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
            const panel = vscode.window.createWebviewPanel(VIEW, 'Model', place, { retainContextWhenHidden: true });
            panel.onDidChangeViewState(() => panel.visible && void this.update());
            this.fill(panel);
        }
        await this.update();
    }

    /** The view is opened: by the command, by whoever clicks on it, or with the window in which it was open before. */
    resolveWebviewView(view: vscode.WebviewView): void {
        view.onDidChangeVisibility(() => view.visible && void this.update());
        this.fill(view);
        const editor = vscode.window.activeTextEditor;
        if (!this.source && editor && hasModels(editor.document)) {
            this.source = editor.document.uri;
            this.line = editor.selection.active.line + 1;
        }
    }

    dispose(): void {
        if (this.home && 'dispose' in this.home) {
            this.home.dispose();
        }
        this.subscriptions.dispose();
    }

    private fill(home: Home): void {
        const { webview } = home;
        this.home = home;
        home.onDidDispose(() => (this.home = this.home === home ? undefined : this.home));
        webview.options = { enableScripts: true, localResourceRoots: [this.folder] };
        webview.onDidReceiveMessage((said: Said) => void this.hear(said));
        const address = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(this.folder, name)).toString();
        const scripts = JSON.parse(readFileSync(vscode.Uri.joinPath(this.folder, 'scripts.json').fsPath, 'utf8')) as string[];
        const source = webview.cspSource;
        webview.html = `<!DOCTYPE html>
<html lang="en" data-host="vscode">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${source}; script-src ${source}; img-src data:">
<title>Model</title>
<link rel="stylesheet" href="${address('view.css')}">
</head>
<body>
<div id="root"></div>
${scripts.map((name) => `<script src="${address(name)}"></script>`).join('\n')}
</body>
</html>`;
    }

    /** Ask for what is to be shown, and show it: what is known at once, then with the steps of forward, then with the memory. What was shown stays until then. */
    private async update(): Promise<void> {
        const { home, source } = this;
        if (!home?.visible) {
            return;
        }
        if (!source) {
            this.post({ type: 'message', text: 'Put the cursor into the class of a model to see it here.' });
            return;
        }
        this.asked += 1;
        const number = this.asked;
        let answer: Answer;
        try {
            answer = await this.ask(source, { ...this.options, until: 'shapes' });
            for (const until of ['steps', undefined] as const) {
                if (answer?.model?.complete !== false || number !== this.asked || home !== this.home) {
                    break;
                }
                this.tellModel(answer.model);
                answer = await this.ask(source, { ...this.options, ...(until && { until }) });
            }
        } catch (error) {
            answer = { version: 0, message: error instanceof Error ? error.message : String(error) };
        }
        if (number !== this.asked || home !== this.home || !answer) {
            return;
        }
        if (answer.model) {
            this.tellModel(answer.model);
        } else if (answer.message && !this.isOutdated(source, answer.version)) {
            const told = this.told?.source === source.toString() ? this.told.class : undefined;
            if (told && !answer.without_example) {
                this.shown = told; // The cursor is in a class that is no model: the view stays with the one that it shows.
                return;
            }
            const same = told !== undefined && (this.shown === '' || this.shown === told);
            this.post({ type: 'message', text: answer.message, same, withoutExample: answer.without_example });
        }
    }

    /** Whether an answer is of a text that has been edited since: the next one follows. */
    private isOutdated(source: vscode.Uri, version: number): boolean {
        const document = vscode.workspace.textDocuments.find(({ uri }) => uri.toString() === source.toString());
        return document !== undefined && source.scheme !== CELL && version > 0 && version < document.version;
    }

    private tellModel(model: { file: string; class: string }): void {
        if (this.home) {
            this.home.title = `Model: ${model.class}`;
        }
        this.told = { source: this.source?.toString() ?? '', class: model.class };
        this.post({ type: 'model', model });
        this.tellCursor();
    }

    /** The memory of a training step with other sizes, as fast as it is known. */
    private async tellMemory(source: vscode.Uri, options: Options): Promise<void> {
        let answer: Answer = null;
        try {
            answer = await this.ask(source, options);
        } finally {
            this.post({ type: 'memory', dim: options.memory, memory: answer?.memory ?? null, largest: answer?.largest ?? null });
        }
    }

    private ask(source: vscode.Uri, options: Options): Promise<Answer> {
        return this.server.execute<Answer>('shapelens.model', source.toString(), this.shown, this.line, options);
    }

    private post(message: unknown): void {
        void this.home?.webview.postMessage(message);
    }

    /** The cursor has moved: its row is marked at once, another class is shown once it has come to rest. */
    private follow(editor: vscode.TextEditor): void {
        if (!this.home || !hasModels(editor.document)) {
            return;
        }
        const line = editor.selection.active.line + 1;
        const same = this.source?.toString() === editor.document.uri.toString();
        this.source = editor.document.uri;
        this.line = line;
        this.tellCursor();
        clearTimeout(this.moved);
        this.moved = setTimeout(() => {
            const shown = classAt(editor.document, line);
            if (!same || (shown && shown !== this.shown)) {
                this.shown = shown;
                void this.update();
            }
        }, CURSOR_MS);
    }

    private tellCursor(): void {
        if (this.source) {
            this.post({ type: 'cursor', cursor: { file: this.source.scheme === CELL ? this.source.toString() : this.source.fsPath, line: this.line } });
        }
    }

    private async hear(said: Said): Promise<void> {
        if (said.type === 'ready' || said.type === 'options') {
            this.options = said.options;
            await this.update();
        } else if (said.type === 'memory' && this.source) {
            await this.tellMemory(this.source, said.options);
        } else if (said.type === 'reveal') {
            await reveal(said.place);
        } else if (said.type === 'fix') {
            await fix(said.place, said.title);
        } else if (said.type === 'example' && this.source) {
            await vscode.commands.executeCommand('shapelens.setExample', this.source.toString(), said.class, '');
        } else if (said.type === 'markdown' && this.source) {
            const answer = await this.ask(this.source, { ...this.options, format: 'markdown', amounts: said.amounts });
            if (answer?.text) {
                await vscode.env.clipboard.writeText(answer.text);
                void vscode.window.setStatusBarMessage('The table was copied', 3_000);
            }
        } else if (said.type === 'save' && this.source) {
            const content = said.content ?? (await this.ask(this.source, { ...this.options, format: 'html' }))?.text;
            const { dir, name } = path.parse(this.source.fsPath);
            const target = content && (await vscode.window.showSaveDialog({ defaultUri: vscode.Uri.file(path.join(dir, `${name}.${said.kind}`)) }));
            if (target) {
                await vscode.workspace.fs.writeFile(target, bytesOf(content));
            }
        }
    }
}

/** Whether this VS Code has room for views of extensions in its secondary side bar: 1.106 is the first. */
function hasSecondarySideBar(): boolean {
    const [major = 0, minor = 0] = vscode.version.split('.').map(Number);
    return major > 1 || minor >= 106;
}

/** Whether a document is one in which ShapeLens looks for models. */
function hasModels(document: vscode.TextDocument): boolean {
    return document.languageId === 'python' && ['file', 'untitled', CELL].includes(document.uri.scheme);
}

/** What is to be written: a text, or what a data URL holds. */
function bytesOf(content: string): Uint8Array {
    const [, kind, data] = /^data:[\w/+]+;(base64|charset=utf-8),(.*)$/s.exec(content) ?? [];
    if (data === undefined) {
        return new TextEncoder().encode(content);
    }
    return kind === 'base64' ? Buffer.from(data, 'base64') : new TextEncoder().encode(decodeURIComponent(data));
}

/** The name of the class that a line is in, as far as the text says; "" outside of any. */
function classAt(document: vscode.TextDocument, line: number): string {
    let last = Math.min(line, document.lineCount) - 1;
    // A directive and a decorator belong to the class below them.
    while (last + 1 < document.lineCount && /^[#@]/.test(document.lineAt(last).text)) {
        last += 1;
    }
    for (let number = last; number >= 0; number -= 1) {
        const { text } = document.lineAt(number);
        const found = /^class\s+(\w+)/.exec(text);
        if (found?.[1]) {
            return found[1];
        }
        if (number < last && /^[^\s#)\]}]/.test(text)) {
            return '';
        }
    }
    return '';
}

function rangeOf(document: vscode.TextDocument, place: Place): vscode.Range {
    // Columns count code points, VS Code counts UTF-16 units.
    const position = (line: number, column: number): vscode.Position =>
        new vscode.Position(line, [...(line < document.lineCount ? document.lineAt(line).text : '')].slice(0, column).join('').length);
    return new vscode.Range(position(place.line - 1, place.column), position(place.end_line - 1, place.end_column));
}

async function reveal(place: Place): Promise<vscode.TextEditor> {
    const uri = place.file.startsWith(`${CELL}:`) ? vscode.Uri.parse(place.file, true) : vscode.Uri.file(place.file);
    const open = vscode.window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString());
    const document = open?.document ?? (await vscode.workspace.openTextDocument(uri));
    const range = rangeOf(document, place);
    return vscode.window.showTextDocument(document, { viewColumn: open?.viewColumn ?? vscode.ViewColumn.One, selection: range, preserveFocus: true });
}

/** Apply the fix of this title to what is wrong at a place, or the preferred one. */
async function fix(place: Place, title: string | null): Promise<void> {
    const { document } = await reveal(place);
    const range = rangeOf(document, place);
    const found = (await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', document.uri, range, vscode.CodeActionKind.QuickFix.value)) ?? [];
    const fixes = found.filter((action) => action.edit);
    const chosen = fixes.find((action) => action.title === title) ?? fixes.find((action) => action.isPreferred) ?? fixes[0];
    if (chosen?.edit) {
        await vscode.workspace.applyEdit(chosen.edit);
    } else {
        void vscode.window.showInformationMessage('ShapeLens: no fix was found that works.');
    }
}
