// What ShapeLens has and what it lacks, as a read-only document: nothing has to be saved or thrown away.
import * as vscode from 'vscode';
import type { Server } from './server.ts';

const SCHEME = 'shapelens-doctor';

export class Doctor implements vscode.TextDocumentContentProvider, vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<vscode.Uri>();
    readonly onDidChange = this.changed.event;
    private readonly subscriptions: vscode.Disposable;
    private text = '';

    private readonly server: Server;

    constructor(server: Server) {
        this.server = server;
        this.subscriptions = vscode.Disposable.from(this.changed, vscode.workspace.registerTextDocumentContentProvider(SCHEME, this));
    }

    /** Examine the installation anew and show what was found. */
    async show(): Promise<void> {
        const location = vscode.ProgressLocation.Notification;
        this.text = await vscode.window.withProgress({ location, title: 'ShapeLens: examining the installation' }, () => this.server.examine());
        const uri = vscode.Uri.from({ scheme: SCHEME, path: '/ShapeLens Doctor.md' });
        this.changed.fire(uri);
        await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: false });
    }

    provideTextDocumentContent(): string {
        return this.text;
    }

    dispose(): void {
        this.subscriptions.dispose();
    }
}
