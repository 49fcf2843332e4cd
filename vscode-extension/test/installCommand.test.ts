import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { test } from 'node:test';
import { installCommand } from '../src/installCommand.ts';

const advice = (python: string) => `Install it with \`${python} -m pip install torch\`, or choose another interpreter.`;

test('the install command is what the server advises', () => {
    assert.equal(installCommand(advice('/w/.venv/bin/python'), false), '/w/.venv/bin/python -m pip install torch');
    assert.equal(installCommand(advice('C:\\Py\\python.exe'), true), 'C:\\Py\\python.exe -m pip install torch');
    assert.equal(installCommand(advice('C:\\My Py\\python.exe'), true), '& "C:\\My Py\\python.exe" -m pip install torch');
    assert.equal(installCommand('Choose another interpreter.', false), undefined);
});

test('a shell takes the command as it is, whatever the folder is called', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "it's $HOME & more-"));
    const python = path.join(folder, 'python');
    fs.writeFileSync(python, '#!/bin/sh\necho "$0" "$@"\n', { mode: 0o755 });
    const command = installCommand(advice(python), false) as string;
    assert.equal(execFileSync('sh', ['-c', command], { encoding: 'utf8' }), `${python} -m pip install torch\n`);
    fs.rmSync(folder, { recursive: true });
});
