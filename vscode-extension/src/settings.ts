// The settings, as the server gets them.
import * as vscode from 'vscode';

/**
 * The `shapelens` settings that somebody has set, as nested objects: `{hints: {layers: false}}`.
 *
 * Defaults are left out: the server has the same ones, and what is sent takes precedence over `[tool.shapelens]` in
 * pyproject.toml, which a default must not.
 */
export function settingsThatAreSet(extension: vscode.Extension<unknown>, scope?: vscode.ConfigurationScope): Record<string, unknown> {
    const configuration = vscode.workspace.getConfiguration(undefined, scope ?? null);
    const set: Record<string, unknown> = {};
    for (const name of settingNames(extension)) {
        const found = configuration.inspect(name);
        if ([found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue].every((value) => value === undefined)) {
            continue;
        }
        const parts = name.split('.').slice(1);
        const last = parts.pop() as string;
        let at = set;
        for (const part of parts) {
            at = (at[part] ??= {}) as Record<string, unknown>;
        }
        at[last] = configuration.get(name);
    }
    return set;
}

function settingNames(extension: vscode.Extension<unknown>): string[] {
    const manifest = extension.packageJSON as { contributes: { configuration: { properties: Record<string, unknown> }[] } };
    return manifest.contributes.configuration.flatMap((section) => Object.keys(section.properties));
}

/** The same settings, with no hints: what the command that toggles them does for its window. */
export function withoutHints(set: Record<string, unknown>): Record<string, unknown> {
    return { ...set, hints: { ...(set['hints'] as Record<string, unknown> | undefined), layers: false, values: false, parameters: false } };
}
