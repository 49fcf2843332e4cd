import * as vscode from 'vscode';
import { AnnotatedFiles } from './annotated.ts';
import { registerCommands } from './commands.ts';
import { Doctor } from './doctor.ts';
import { Interpreters } from './interpreter.ts';
import { Log } from './log.ts';
import { ModelView } from './modelView.ts';
import { Server } from './server.ts';
import { PYTHON_DOCUMENTS, Status } from './status.ts';
import { whenTrusted } from './trust.ts';

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
    const log = new Log();
    const status = new Status();
    const interpreters = new Interpreters(log);
    server = new Server(context.extension, log, status, interpreters);
    const annotated = new AnnotatedFiles(server);
    const model = new ModelView(server, context.extension);
    const doctor = new Doctor(server);
    context.subscriptions.push(
        log,
        status,
        interpreters,
        server,
        annotated,
        model,
        doctor,
        registerCommands(server, annotated, model, doctor, log, context.extension),
        vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('shapelens.log') && log.followSettings()),
        followSummary(server, status),
        // Looking for the interpreter starts the server, as every change of it does.
        whenTrusted(status, log, () => void interpreters.look()),
    );
}

/** Keeps the status bar at what is known of the file in the active editor. The newest question wins. */
function followSummary(server: Server, status: Status): vscode.Disposable {
    let asked = 0;
    const follow = async () => {
        const document = vscode.window.activeTextEditor?.document;
        if (!document) {
            return; // The focus is in a panel: the editor beside it is still the one that is meant.
        }
        const number = ++asked;
        const isPython = vscode.languages.match(PYTHON_DOCUMENTS, document) > 0;
        // A server that ends meanwhile has nothing to say.
        const summary = isPython ? await server.summaryOf(document.uri).catch(() => '') : '';
        if (number === asked) {
            status.setSummary(summary);
        }
    };
    const ask = () => void follow();
    return vscode.Disposable.from(server.onDidAnalyse(ask), server.onDidRun(ask), vscode.window.onDidChangeActiveTextEditor(ask));
}

export async function deactivate(): Promise<void> {
    await server?.stop();
}
