// The packages of the platforms: each holds the native modules of its own platform for every Python, and none of the others.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { test } from 'node:test';

const extension = path.join(__dirname, '..', '..');
const SUFFIXES: Record<string, string> = {
    'linux-x64': 'x86_64-linux-gnu.so',
    'linux-arm64': 'aarch64-linux-gnu.so',
    'darwin-arm64': 'darwin.so',
    'win32-x64': 'win_amd64.pyd',
};
const PYTHONS = 5;

function native(file: string): string[] {
    const listing = execFileSync('python3', ['-m', 'zipfile', '--list', file], { cwd: extension, encoding: 'utf8', maxBuffer: 1 << 26 });
    return listing.split('\n').map((line) => line.split(/\s/)[0] ?? '').filter((name) => name.includes('/native.'));
}

test('each platform has a package with its own native modules only', { timeout: 300_000 }, () => {
    execFileSync(process.execPath, ['scripts/package.mjs', '--targets'], { cwd: extension, stdio: 'pipe' });
    const { name, version } = JSON.parse(fs.readFileSync(path.join(extension, 'package.json'), 'utf8'));
    const universal = `${name}-${version}.vsix`;
    assert.equal(native(universal).length, PYTHONS * Object.keys(SUFFIXES).length);
    for (const [target, suffix] of Object.entries(SUFFIXES)) {
        const file = `${name}-${target}-${version}.vsix`;
        const modules = native(file);
        assert.equal(modules.length, PYTHONS, `${file} holds ${modules.join(', ')}`);
        assert.ok(modules.every((module) => module.endsWith(suffix)), `${file} holds ${modules.join(', ')}`);
        assert.ok(fs.statSync(path.join(extension, file)).size < fs.statSync(path.join(extension, universal)).size / 2);
        fs.rmSync(path.join(extension, file));
    }
});
