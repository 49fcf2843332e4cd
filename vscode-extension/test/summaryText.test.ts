import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { test } from 'node:test';
import { summaryText } from '../src/summaryText.ts';

test('a file is said in a few words, without what there is none of', () => {
    assert.equal(summaryText({ tensors: 14, mistakes: 1, guessed: 2 }), '14 tensors · 1 mistake · guessed inputs: 2');
    assert.equal(summaryText({ tensors: 1, mistakes: 3, guessed: 0 }), '1 tensor · 3 mistakes');
    assert.equal(summaryText({ tensors: 0, mistakes: 0, guessed: 0 }), '');
});

const manifest = JSON.parse(fs.readFileSync(path.join(__dirname, '..', '..', 'package.json'), 'utf8'));

test('the model comes first among the commands, and each of the manifest is registered', () => {
    const commands = manifest.contributes.commands.map(({ command }: { command: string }) => command);
    assert.equal(commands[0], 'shapelens.showModel');
    const source = fs.readFileSync(path.join(__dirname, '..', '..', 'src', 'commands.ts'), 'utf8');
    assert.deepEqual(commands.filter((command: string) => !source.includes(`command('${command}'`)), []);
});

test('settings stand in groups, each in its order, all hints together', () => {
    for (const { title, properties } of manifest.contributes.configuration) {
        const orders = Object.values<{ order: number }>(properties).map(({ order }) => order);
        assert.deepEqual(orders, orders.map((_, index) => index + 1), title);
        const ofHints = Object.keys(properties).some((name) => name.startsWith('shapelens.hints.'));
        assert.equal(ofHints, title === 'Hints');
    }
});
