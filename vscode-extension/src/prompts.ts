// The few messages that pop up: only where nothing works until the user does something.
import * as vscode from 'vscode';
import { installCommand } from './installCommand.ts';

const LOG = 'Show Log';
const asked = new Set<string>();

/** torch is missing from an interpreter, which `message` names. `advice` holds the command that installs it. Asked once for each interpreter. */
export async function askForTorch(message: string, advice: string): Promise<void> {
    if (asked.has(message)) {
        return;
    }
    asked.add(message);
    const [select, copy] = ['Select Interpreter', 'Copy Install Command'];
    const command = installCommand(advice, process.platform === 'win32');
    const chosen = await vscode.window.showWarningMessage(message, ...[select, ...(command ? [copy] : []), LOG]);
    if (chosen === select) {
        await vscode.commands.executeCommand('shapelens.selectInterpreter');
    } else if (chosen === copy && command) {
        await vscode.env.clipboard.writeText(command);
        void vscode.window.setStatusBarMessage('$(check) Copied', 3_000);
    } else if (chosen === LOG) {
        await vscode.commands.executeCommand('shapelens.showLog');
    }
}

/** There is no interpreter, or none that can run the server. Asked once for each reason. */
export async function askForPython(problem: string, setting: string): Promise<void> {
    if (asked.has(problem)) {
        return;
    }
    asked.add(problem);
    const open = 'Open Setting';
    const chosen = await vscode.window.showErrorMessage(`ShapeLens: ${problem}`, open, LOG);
    if (chosen === open) {
        await vscode.commands.executeCommand('workbench.action.openSettings', setting);
    } else if (chosen === LOG) {
        await vscode.commands.executeCommand('shapelens.showLog');
    }
}

/** The server has ended too often. */
export async function askForRestart(message: string): Promise<void> {
    const restart = 'Restart';
    const chosen = await vscode.window.showErrorMessage(message, restart, LOG);
    if (chosen === restart) {
        await vscode.commands.executeCommand('shapelens.restart');
    } else if (chosen === LOG) {
        await vscode.commands.executeCommand('shapelens.showLog');
    }
}
