import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { after, before, test } from 'node:test';
import { expand, inWorkspace, locate, pythonOnPath, serverPythonsOnPath } from '../src/pythonPaths.ts';

const python = path.join('bin', 'python');
let root: string;

before(() => {
    root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'paths-')));
    for (const folder of ['api', 'web', 'bin']) {
        fs.mkdirSync(path.join(root, folder));
    }
    execFileSync('python3', ['-m', 'venv', '--without-pip', path.join(root, 'web', '.venv')]);
    execFileSync('python3', ['-m', 'venv', '--without-pip', path.join(root, 'api', 'envs', 'torch')]);
    fs.writeFileSync(path.join(root, 'bin', 'python3'), '');
});

after(() => fs.rmSync(root, { recursive: true }));

test('a path setting is expanded', () => {
    const folders = [
        { name: 'api', path: '/w/api' },
        { name: 'web', path: '/w/web' },
    ];
    const table: [string, string][] = [
        ['${workspaceFolder}/.venv/bin/python', '/w/api/.venv/bin/python'],
        ['${workspaceFolder:web}/.venv', '/w/web/.venv'],
        ['${workspaceFolder:gone}/.venv', '/w/api/${workspaceFolder:gone}/.venv'],
        ['${env:CONDA}/bin/python', '/opt/conda/bin/python'],
        ['${userHome}/envs/torch', `${os.homedir()}/envs/torch`],
        ['~/envs/torch', `${os.homedir()}/envs/torch`],
        ['~', os.homedir()],
        ['.venv/bin/python', '/w/api/.venv/bin/python'],
        ['../shared/python', '/w/shared/python'],
        ['  /usr/bin/python3  ', '/usr/bin/python3'],
        ['python3.12', 'python3.12'],
    ];
    for (const [setting, expected] of table) {
        assert.equal(expand(setting, folders, { CONDA: '/opt/conda' }), expected, setting);
    }
    assert.equal(expand('.venv/bin/python', [], {}), '.venv/bin/python');
});

test('a setting may name an interpreter, an environment or a name on PATH', () => {
    const environment = path.join(root, 'api', 'envs', 'torch');
    assert.equal(locate(path.join(environment, python)), path.join(environment, python));
    assert.equal(locate(environment), path.join(environment, python));
    assert.equal(locate(root), undefined);
    assert.equal(locate('/no/such/python'), undefined);
    assert.equal(locate('python', { PATH: path.join(environment, 'bin') }), path.join(environment, python));
    assert.equal(locate('python', { PATH: '' }), undefined);
});

test('.venv is found in the first workspace folder that has one', () => {
    const folder = (name: string) => ({ name, path: path.join(root, name) });
    assert.equal(inWorkspace([folder('api'), folder('web')]), path.join(root, 'web', '.venv', python));
    assert.equal(inWorkspace([folder('api')]), undefined);
    assert.equal(inWorkspace([]), undefined);
});

test('an empty python3 on PATH and relative PATH entries are passed over', () => {
    const bin = path.join(root, 'web', '.venv', 'bin');
    assert.equal(pythonOnPath({ PATH: ['.', path.join(root, 'bin'), bin].join(path.delimiter) }), path.join(bin, 'python3'));
    assert.equal(pythonOnPath({ PATH: path.join(root, 'bin') }), undefined);
    assert.deepEqual(serverPythonsOnPath({ PATH: bin }).filter((found) => /python3?$/.test(found)), [path.join(bin, 'python3'), path.join(bin, 'python')]);
});
