import * as vscode from 'vscode';
import { AnnotatedFiles } from './annotated.ts';
import { registerCommands } from './commands.ts';
import { Doctor } from './doctor.ts';
import { Interpreters } from './interpreter.ts';
import { Log } from './log.ts';
import { ModelView } from './modelView.ts';
import { Server } from './server.ts';
import { Status } from './status.ts';
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
        registerCommands(server, annotated, model, doctor, log),
        vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('shapelens.log') && log.followSettings()),
        // Looking for the interpreter starts the server, as every change of it does.
        whenTrusted(status, log, () => void interpreters.look()),
    );
}

export async function deactivate(): Promise<void> {
    await server?.stop();
}
