// The annotated file: a read-only document with the hints written into its margin, made by the server.
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Server } from './server.ts';

const SCHEME = 'shapelens-annotated';

export class AnnotatedFiles implements vscode.TextDocumentContentProvider, vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    readonly onDidChange = this.changed.event;
    private readonly subscriptions: vscode.Disposable;

    private readonly server: Server;

    constructor(server: Server) {
        this.server = server;
        this.subscriptions = vscode.Disposable.from(
            this.changed,
            vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
            server.onDidRun(() => {
                for (const document of vscode.workspace.textDocuments.filter((document) => document.uri.scheme === SCHEME)) {
                    this.changed.fire(document.uri);
                }
            }),
        );
    }

    /** Open the annotated text of a document, in a tab next to it: the margin needs the width. */
    async show(source: vscode.Uri): Promise<void> {
        const { dir, name, ext } = path.posix.parse(source.path);
        // What is shown of a notebook is its code.
        const annotated = `${name} (shapes)${ext === '.ipynb' ? '.py' : ext || '.py'}`;
        const uri = source.with({ scheme: SCHEME, authority: '', path: path.posix.join('/', dir, annotated), query: source.toString(), fragment: '' });
        const document = await vscode.workspace.openTextDocument(uri);
        // What was shown before may be older than the last run.
        this.changed.fire(uri);
        await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Active, preview: false });
    }

    async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
        const answer = await this.server.execute<{ text: string } | null>('shapelens.annotated', uri.query);
        // Null once the file is closed: what is shown stays as it was.
        return answer?.text ?? vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString())?.getText() ?? '';
    }

    dispose(): void {
        this.subscriptions.dispose();
    }
}
