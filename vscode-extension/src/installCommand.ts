/** The command between backticks in what the server advises, `PYTHON -m pip …`, ready for a terminal; undefined if there is none. */
export function installCommand(advice: string, powerShell: boolean): string | undefined {
    const found = /`(.+?) (-m pip [^`]+)`/.exec(advice);
    if (!found) {
        return undefined;
    }
    const [, python, rest] = found as unknown as [string, string, string];
    if (!/[^\w./\\:@+-]/.test(python)) {
        return `${python} ${rest}`;
    }
    // PowerShell runs a quoted path only after its call operator.
    return powerShell ? `& "${python}" ${rest}` : `'${python.replaceAll("'", `'\\''`)}' ${rest}`;
}
