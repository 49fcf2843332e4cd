// Workspace trust. The user's model is code, and running it is all that ShapeLens does: without trust nothing is started, not even an interpreter.
import * as vscode from 'vscode';
import type { Log } from './log.ts';
import type { Status } from './status.ts';

/** Call `start` now if the workspace is trusted, else when it becomes so. */
export function whenTrusted(status: Status, log: Log, start: () => void): vscode.Disposable {
    if (vscode.workspace.isTrusted) {
        start();
        return new vscode.Disposable(() => undefined);
    }
    const detail = 'Shapes are found by running the model, so nothing is started before this workspace is trusted.';
    status.show({ state: 'untrusted', message: 'waits until the workspace is trusted', detail });
    log.info(detail);
    return vscode.workspace.onDidGrantWorkspaceTrust(() => {
        log.info('the workspace is trusted now');
        start();
    });
}
