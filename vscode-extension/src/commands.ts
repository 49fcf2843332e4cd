// The commands of the palette, of the code lens and of the status item.
import * as vscode from 'vscode';
import type { AnnotatedFiles } from './annotated.ts';
import type { Doctor } from './doctor.ts';
import type { Log } from './log.ts';
import type { ModelView } from './modelView.ts';
import type { Server } from './server.ts';

/** What the code lens of a class passes on: document, class name, the example as it is now ("" for none). */
type ExampleArguments = [uri: string, className: string, expression: string];
/** An example that the server found for a class, and where, in words. */
type FoundExample = { expression: string; evidence: string };
/** What became of an example that was tried: the shape that came out, or what went wrong. */
type Trial = { works: boolean; message: string };
/** What running models for real came to: in words, and how many findings; null where that could not be done. */
type Examined = { message: string; found: number | null };

export function registerCommands(server: Server, annotated: AnnotatedFiles, model: ModelView, doctor: Doctor, log: Log, extension: vscode.Extension<unknown>): vscode.Disposable {
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
        command('shapelens.doctor', () => doctor.show()),
        command('shapelens.clearCaches', async () => {
            void vscode.window.showInformationMessage(`ShapeLens: ${await server.execute<string>('shapelens.emptyCache')}.`);
        }),
        command('shapelens.selectInterpreter', selectInterpreter),
        command('shapelens.setExample', (...given: string[]) => setExample(server, given)),
        command('shapelens.chooseExample', (...given: string[]) => chooseExample(server, given)),
        command('shapelens.menu', offerMenu),
        command('shapelens.openSample', () => openSample(extension)),
        command('shapelens.toggleHints', () => server.toggleHints()),
        command('shapelens.exampleActions', (uri: string, className: string, expression: string, actions: string[]) =>
            offerActions(server, [uri, className, expression], actions),
        ),
        command('shapelens.showModel', async (...given: unknown[]) => {
            const [uri, className] = given;
            if (typeof uri === 'string' && typeof className === 'string') {
                await model.show(vscode.Uri.parse(uri, true), 1, className); // Of a code lens. The icon passes on other things.
                return;
            }
            const editor = pythonEditor();
            if (editor) {
                await model.show(editor.document.uri, editor.selection.active.line + 1);
            }
        }),
        command('shapelens.examineDeeply', async () => {
            const editor = pythonEditor();
            if (editor) {
                await examineDeeply(server, editor.document);
            }
        }),
        command('shapelens.showAnnotated', async () => {
            const editor = pythonEditor();
            if (editor) {
                await annotated.show(editor.document.uri);
            }
        }),
    );
}

/** The menu of the status bar: what people look for there, the likeliest first. */
async function offerMenu(): Promise<void> {
    const items = [
        { label: '$(type-hierarchy-sub) Show Model', command: 'shapelens.showModel' },
        { label: '$(eye) Toggle Hints', command: 'shapelens.toggleHints' },
        { label: '$(snake) Select Interpreter', command: 'shapelens.selectInterpreter' },
        { label: '$(output) Show Log', command: 'shapelens.showLog' },
        { label: '$(pulse) Doctor', command: 'shapelens.doctor' },
        { label: '$(debug-restart) Restart Server', command: 'shapelens.restart' },
    ];
    const chosen = await vscode.window.showQuickPick(items, { title: 'ShapeLens' });
    if (chosen) {
        await vscode.commands.executeCommand(chosen.command);
    }
}

/** Has the models of a document run for real, as `shapelens check --deep` does. The server publishes what that tells; here it is counted. */
async function examineDeeply(server: Server, document: vscode.TextDocument): Promise<void> {
    const name = document.uri.path.split('/').pop();
    const options = { location: vscode.ProgressLocation.Notification, title: `ShapeLens: running the models of ${name} with numbers`, cancellable: true };
    const answer = await vscode.window.withProgress(options, async (_, token) => {
        try {
            return await server.executeUntil<Examined | null>(token, 'shapelens.examine', document.uri.toString());
        } catch (error) {
            if (token.isCancellationRequested) {
                return null;
            }
            throw error;
        }
    });
    if (answer?.found) {
        await vscode.commands.executeCommand('workbench.actions.view.problems');
    }
    if (answer) {
        void vscode.window.showInformationMessage(`ShapeLens: ${answer.message}`);
    }
}

/** A small network with a wrong number, as a file that nobody has saved yet: it may be changed, and nothing is written. */
async function openSample(extension: vscode.Extension<unknown>): Promise<void> {
    const content = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(extension.extensionUri, 'out', 'net.py'));
    const document = await vscode.workspace.openTextDocument({ language: 'python', content: new TextDecoder().decode(content) });
    await vscode.window.showTextDocument(document);
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

const APPLY = 'shapelens.applyExample'; // the server's own
/** What can be done with the example of a class, as the menu of its code lens says it. */
const ACTIONS: Record<string, { label: string; command: string }> = {
    choose: { label: '$(list-selection) Choose another example…', command: 'shapelens.chooseExample' },
    set: { label: '$(edit) Set example input…', command: 'shapelens.setExample' },
    write: { label: '$(comment) Write as directive', command: APPLY },
    show: { label: '$(type-hierarchy-sub) Show model', command: 'shapelens.showModel' },
};

/** The menu that a click on the lens of a class opens: the whole example, and what to do with it. */
async function offerActions(server: Server, example: ExampleArguments, actions: string[]): Promise<void> {
    const items = actions.map((action) => ACTIONS[action]).filter((item) => item !== undefined);
    const [, className, expression] = example;
    const chosen = await vscode.window.showQuickPick(items, { title: className, placeHolder: expression || 'There is no example of its own' });
    if (chosen?.command === APPLY) {
        await carryOut(server, APPLY, ...example);
    } else if (chosen) {
        await vscode.commands.executeCommand(chosen.command, ...example);
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
        validateInput: (text) => problemOf(server, uri, className, text),
    });
    if (expression !== undefined) {
        await carryOut(server, APPLY, uri, className, expression);
    }
}

/** What the input box says below an example that is being typed. Only wrong syntax keeps it from being set: the model may be what is wrong. */
async function problemOf(server: Server, ...example: ExampleArguments): Promise<string | vscode.InputBoxValidationMessage | null> {
    const problem = await server.execute<string | null>('shapelens.checkExample', ...example);
    if (problem) {
        return problem;
    }
    const tried = await server.execute<Trial | null>('shapelens.tryExample', ...example);
    const { Info, Warning } = vscode.InputBoxValidationSeverity;
    return tried && { message: tried.message, severity: tried.works ? Info : Warning };
}

/** Lets the user choose among the examples that were found for a class. The choice lasts until the server ends, unless it is written down. */
async function chooseExample(server: Server, given: string[]): Promise<void> {
    const [uri, className] = given.length >= 2 ? (given as ExampleArguments) : ((await exampleAtCursor()) ?? []);
    if (uri === undefined || className === undefined) {
        return;
    }
    const found = await server.execute<FoundExample[]>('shapelens.foundExamples', uri, className);
    if (found.length === 0) {
        void vscode.window.showInformationMessage(`ShapeLens: ${className} has no examples to choose from.`);
        return;
    }
    const write: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon('edit'), tooltip: 'Write as directive' };
    const picker = vscode.window.createQuickPick();
    picker.title = `Examples of ${className}`;
    picker.placeholder = 'What the shapes are shown for';
    picker.matchOnDescription = true;
    picker.items = found.map(({ expression, evidence }) => ({ label: expression, description: evidence, buttons: [write] }));
    const chosen = await new Promise<{ expression: string; command: string } | undefined>((resolve) => {
        picker.onDidAccept(() => {
            const [item] = picker.selectedItems;
            resolve(item && { expression: item.label, command: 'shapelens.useExample' });
        });
        picker.onDidTriggerItemButton(({ item }) => resolve({ expression: item.label, command: APPLY }));
        picker.onDidHide(() => resolve(undefined));
        picker.show();
    });
    picker.dispose();
    if (chosen) {
        await carryOut(server, chosen.command, uri, className, chosen.expression);
    }
}

/** Has the server carry out a command that answers with what stood in the way, if anything did. */
async function carryOut(server: Server, command: string, ...parameters: string[]): Promise<void> {
    const obstacle = await server.execute<string | null>(command, ...parameters);
    if (obstacle) {
        throw new Error(obstacle);
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
    const ours = lenses.filter((lens) => lens.command?.command === 'shapelens.setExample' || lens.command?.command === 'shapelens.exampleActions');
    ours.sort((one, other) => one.range.start.compareTo(other.range.start));
    const lens = ours.findLast((lens) => lens.range.start.line <= selection.active.line) ?? ours[0];
    if (!lens) {
        void vscode.window.showInformationMessage('ShapeLens: there is no nn.Module class in this file.');
        return undefined;
    }
    return lens.command?.arguments?.slice(0, 3) as ExampleArguments;
}

function pythonEditor(): vscode.TextEditor | undefined {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.languageId !== 'python') {
        void vscode.window.showInformationMessage('ShapeLens: open a Python file first.');
        return undefined;
    }
    return editor;
}
