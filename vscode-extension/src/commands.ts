// The commands of the palette, of the code lens and of the status item.
import * as vscode from 'vscode';
import type { AnnotatedFiles } from './annotated.ts';
import type { Log } from './log.ts';
import type { Server } from './server.ts';

/** What the code lens of a class passes on: document, class name, the example as it is now ("" for none). */
type ExampleArguments = [uri: string, className: string, expression: string];

export function registerCommands(server: Server, annotated: AnnotatedFiles, log: Log): vscode.Disposable {
    const command = (name: string, run: (...parameters: never[]) => unknown): vscode.Disposable =>
        vscode.commands.registerCommand(name, async (...parameters: never[]) => {
            try {
                await run(...parameters);
            } catch (error) {
                const message = error instanceof Error ? error.message : String(error);
                log.error(`${name}: ${message}`);
                void vscode.window.showErrorMessage(message);
            }
        });
    return vscode.Disposable.from(
        command('shapelens.restart', () => server.restartAfresh()),
        command('shapelens.showLog', () => log.show()),
        command('shapelens.selectInterpreter', selectInterpreter),
        command('shapelens.setExample', (...given: string[]) => setExample(server, given)),
        command('shapelens.showAnnotated', async () => {
            const editor = pythonEditor();
            if (editor) {
                await annotated.show(editor.document.uri);
            }
        }),
    );
}

async function selectInterpreter(): Promise<void> {
    const set = vscode.workspace.getConfiguration('shapelens').get<string>('interpreter', '').trim() !== '';
    // The Python extension's choice has no effect while the setting says otherwise.
    if (!set && (await vscode.commands.getCommands(true)).includes('python.setInterpreter')) {
        await vscode.commands.executeCommand('python.setInterpreter');
    } else {
        await vscode.commands.executeCommand('workbench.action.openSettings', 'shapelens.interpreter');
    }
}

async function setExample(server: Server, given: string[]): Promise<void> {
    const [uri, className, current] = given.length >= 2 ? (given as ExampleArguments) : ((await exampleAtCursor()) ?? []);
    if (uri === undefined || className === undefined) {
        return;
    }
    const expression = await vscode.window.showInputBox({
        title: `Example input of ${className}`,
        prompt: `Build the model and call it. f32[B:2, 3, 32, 32] is a float32 tensor of that shape whose first dim is called B.`,
        value: current || `${className}()(f32[])`,
        // With no example yet, the cursor goes where the shape is to be typed.
        ...(current ? {} : { valueSelection: [className.length + 7, className.length + 7] as [number, number] }),
        ignoreFocusOut: true,
        validateInput: (text) => server.execute<string | null>('shapelens.checkExample', uri, className, text),
    });
    if (expression !== undefined && expression !== current) {
        const obstacle = await server.execute<string | null>('shapelens.applyExample', uri, className, expression);
        if (obstacle) {
            throw new Error(obstacle);
        }
    }
}

/** The class that the cursor is in, as the server's code lenses know it; the first class of the file if it is above all of them. */
async function exampleAtCursor(): Promise<ExampleArguments | undefined> {
    const editor = pythonEditor();
    if (!editor) {
        return undefined;
    }
    const { document, selection } = editor;
    const lenses = (await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', document.uri, 1000)) ?? [];
    const ours = lenses.filter((lens) => lens.command?.command === 'shapelens.setExample');
    ours.sort((one, other) => one.range.start.compareTo(other.range.start));
    const lens = ours.findLast((lens) => lens.range.start.line <= selection.active.line) ?? ours[0];
    if (!lens) {
        void vscode.window.showInformationMessage('ShapeLens: there is no nn.Module class in this file.');
        return undefined;
    }
    return lens.command?.arguments as ExampleArguments;
}

function pythonEditor(): vscode.TextEditor | undefined {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== 'python') {
        void vscode.window.showInformationMessage('ShapeLens: open a Python file first.');
        return undefined;
    }
    return editor;
}
