// The server as it is packaged: `npm run build` or `npm run package` comes first.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { test } from 'node:test';
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from 'vscode-jsonrpc/node';
import { serverPythonsOnPath } from '../src/pythonPaths.ts';
import { chooseServerPython, prober } from '../src/serverPython.ts';

const launch = path.resolve('bundled', 'launch.py');
const probe = prober(launch);

async function serverPython(): Promise<string> {
    const { python, problem } = await chooseServerPython(undefined, serverPythonsOnPath(), probe);
    assert.ok(python, problem);
    return python;
}

test('the first interpreter that can run the server is chosen', async () => {
    const python = await serverPython();
    assert.deepEqual(await chooseServerPython(undefined, [process.execPath, '/no/such/python', python], probe), { python });
    assert.deepEqual(await chooseServerPython(python, [], probe), { python });
});

test('an interpreter that cannot run it is named with the reason', async () => {
    const wrong = await chooseServerPython(process.execPath, [await serverPython()], probe);
    assert.match(wrong.problem ?? '', /^shapelens\.serverInterpreter: .*node.* does not run as a Python interpreter: /);
    const none = await chooseServerPython(undefined, [process.execPath], probe);
    assert.match(none.problem ?? '', /^No Python that can run the ShapeLens server was found; name one in shapelens\.serverInterpreter\. .*node/);
    assert.match((await chooseServerPython(undefined, [], probe)).problem ?? '', /^No Python was found\./);
});

test('the packaged doctor says what there is, and what to do where torch is missing', { timeout: 60_000 }, async () => {
    const python = await serverPython();
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'doctor-'));
    try {
        execFileSync(python, ['-m', 'venv', '--without-pip', path.join(folder, 'bare')]);
        const interpreter = path.join(folder, 'bare', process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python');
        const said = execFileSync(python, ['-I', '-X', 'utf8', launch, '--doctor', folder, interpreter], { encoding: 'utf8' });
        assert.match(said, /^# ShapeLens\n\n✓ ShapeLens \d+\.\d+\.\d+ on Python 3\./);
        assert.match(said, /✗ PyTorch is not installed for .*\n→ `.*-m pip install torch`/);
        assert.match(said, /## For a report of a bug[^]*- no worker: /);
    } finally {
        fs.rmSync(folder, { recursive: true });
    }
});

test('the packaged server answers, whatever lies in PYTHONPATH and the working directory', { timeout: 60_000 }, async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'shadow-'));
    for (const name of ['pygls', 'lsprotocol', 'libcst', 'shapelens', 'json', 'typing_extensions']) {
        fs.writeFileSync(path.join(folder, `${name}.py`), 'raise SystemExit("a file of the user has taken the place of a library")\n');
    }
    const child = spawn(await serverPython(), ['-I', launch], { cwd: folder, env: { ...process.env, PYTHONPATH: folder, PYTHONSTARTUP: folder } });
    let errors = '';
    child.stderr.on('data', (text) => (errors += text));
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const connection = createMessageConnection(new StreamMessageReader(child.stdout), new StreamMessageWriter(child.stdin));
    connection.listen();
    try {
        const initialized = connection.sendRequest<{ capabilities: Record<string, unknown>; serverInfo: { name: string } }>('initialize', {
            processId: process.pid,
            rootUri: null,
            capabilities: {},
        });
        const answer = await Promise.race([initialized, ended.then(() => assert.fail(errors))]);
        assert.equal(answer.serverInfo.name, 'shapelens');
        assert.ok(answer.capabilities['inlayHintProvider'], JSON.stringify(answer.capabilities));
        await connection.sendRequest('shutdown');
        await connection.sendNotification('exit');
        assert.equal(await ended, 0, errors);
    } finally {
        connection.dispose();
        child.kill('SIGKILL');
        fs.rmSync(folder, { recursive: true });
    }
});
