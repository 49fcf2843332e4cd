// The output channel. VS Code's own log channels have a level of their own, set elsewhere; this one follows `shapelens.log.level`.
import * as vscode from 'vscode';

const LEVELS = { debug: vscode.LogLevel.Debug, info: vscode.LogLevel.Info, warning: vscode.LogLevel.Warning, error: vscode.LogLevel.Error };

export class Log implements vscode.LogOutputChannel {
    private readonly channel = vscode.window.createOutputChannel('ShapeLens', 'log');
    private readonly levelChanged = new vscode.EventEmitter<vscode.LogLevel>();
    readonly onDidChangeLogLevel = this.levelChanged.event;
    readonly name = this.channel.name;
    logLevel = configuredLevel();

    /** Read `shapelens.log.level` again. */
    followSettings(): void {
        this.logLevel = configuredLevel();
        this.levelChanged.fire(this.logLevel);
    }

    trace(message: string): void {
        this.write(vscode.LogLevel.Trace, 'trace', message);
    }

    debug(message: string): void {
        this.write(vscode.LogLevel.Debug, 'debug', message);
    }

    info(message: string): void {
        this.write(vscode.LogLevel.Info, 'info', message);
    }

    warn(message: string): void {
        this.write(vscode.LogLevel.Warning, 'warning', message);
    }

    error(error: string | Error): void {
        this.write(vscode.LogLevel.Error, 'error', error instanceof Error ? (error.stack ?? error.message) : error);
    }

    append(value: string): void {
        this.channel.append(value);
    }

    appendLine(value: string): void {
        this.channel.appendLine(value);
    }

    replace(value: string): void {
        this.channel.replace(value);
    }

    clear(): void {
        this.channel.clear();
    }

    show(): void {
        this.channel.show(true);
    }

    hide(): void {
        this.channel.hide();
    }

    dispose(): void {
        this.levelChanged.dispose();
        this.channel.dispose();
    }

    private write(level: vscode.LogLevel, word: string, message: string): void {
        if (level >= this.logLevel) {
            this.channel.appendLine(`${new Date().toISOString().slice(11, 23)} [${word}] ${message.trimEnd()}`);
        }
    }
}

function configuredLevel(): vscode.LogLevel {
    const level = vscode.workspace.getConfiguration('shapelens').get<keyof typeof LEVELS>('log.level', 'info');
    return LEVELS[level] ?? vscode.LogLevel.Info;
}
