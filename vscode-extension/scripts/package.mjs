// Makes shapelens-VERSION.vsix: the client as one file, the server with all its needs, and what the marketplace shows.
//
//     node scripts/package.mjs            the package, unless it is up to date
//     node scripts/package.mjs --unpacked only what a development host loads: out/ and bundled/
//     node scripts/package.mjs --targets  one package more for each platform, without the native modules of the others
//
// The same files give the same bytes: times in the package are SOURCE_DATE_EPOCH, or those of the last commit.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';

const extension = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
process.chdir(extension);
// The names of platforms in the marketplace, and what their native modules are called.
const TARGETS = {
    'linux-x64': 'x86_64-linux-gnu.so',
    'linux-arm64': 'aarch64-linux-gnu.so',
    'darwin-arm64': 'darwin.so',
    'win32-x64': 'win_amd64.pyd',
};
process.env.SOURCE_DATE_EPOCH ??= lastCommit();
const { name, version, repository } = JSON.parse(fs.readFileSync('package.json', 'utf8'));
const vsix = `${name}-${version}.vsix`;
const unfinished = path.join('out', 'unfinished.vsix');
const stamp = path.join('out', 'package.stamp');

const built = await esbuild.build({
    entryPoints: ['src/extension.ts'],
    outfile: 'out/extension.js',
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    external: ['vscode'],
    minify: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
});
fs.copyFileSync('../docs/net.py', 'out/net.py'); // the sample of the walkthrough
writeNotices(Object.keys(built.metafile.inputs));
run(python(), ['scripts/bundle_server.py']);

if (!process.argv.includes('--unpacked')) {
    const state = stateOf(['package.json', '.vscodeignore', 'README.md', 'CHANGELOG.md', 'LICENSE', 'images', 'out/extension.js', 'out/net.py', 'bundled/stamp.json']);
    if (fs.existsSync(vsix) && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === state) {
        console.log(`${vsix} is up to date`);
    } else {
        for (const old of fs.readdirSync('.').filter((file) => file.endsWith('.vsix'))) {
            fs.rmSync(old);
        }
        makePackage(vsix, []);
        fs.writeFileSync(stamp, state);
    }
}
if (process.argv.includes('--targets')) {
    for (const [target, suffix] of Object.entries(TARGETS)) {
        const ignored = path.join('out', `${target}.vscodeignore`);
        const everything = fs.readFileSync('.vscodeignore', 'utf8');
        // What is let in cannot be left out again, so only the modules of this platform are let in.
        const own = everything.replace('{libs,libcst,server}/**', `{libs,server}/**\n!bundled/libcst/**/{*.py,py.typed,native.*${suffix}}`);
        if (own === everything) {
            fail('.vscodeignore does not let in bundled/{libs,libcst,server}/** any more');
        }
        fs.writeFileSync(ignored, own);
        makePackage(`${name}-${target}-${version}.vsix`, ['--target', target, '--ignoreFile', ignored]);
    }
}

/** Make one package. */
function makePackage(file, options) {
    run(process.execPath, [path.join('node_modules', '@vscode', 'vsce', 'vsce'), 'package', '--no-dependencies', ...linkOptions(), ...options, '--out', unfinished]);
    // In one step, so that nobody installs half a package.
    fs.renameSync(unfinished, file);
    console.log(`${file}: ${(fs.statSync(file).size / 1e6).toFixed(1)} MB`);
}

/** What makes the README's pictures and links hold in the marketplaces; while the project has no public address they stay as they are. */
function linkOptions() {
    const address = /^(https:\/\/github\.com\/(?!OWNER\/)[^/]+\/[^/]+?)(?:\.git)?$/.exec(repository.url)?.[1];
    if (!address) {
        return ['--allow-missing-repository', '--no-rewrite-relative-links'];
    }
    const folder = `HEAD/${repository.directory}`;
    return ['--baseContentUrl', `${address}/blob/${folder}`, '--baseImagesUrl', `${address}/raw/${folder}`];
}

/** When the last commit was made, in seconds; a fixed time outside of a repository. */
function lastCommit() {
    try {
        return execFileSync('git', ['log', '-1', '--format=%ct'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
        return '1767225600';
    }
}

/** A Python with pip: the project's own environment, else the one on PATH. */
function python() {
    const candidates = [process.env.PYTHON, '../.venv/bin/python', '../.venv/Scripts/python.exe', 'python3', 'python'].filter(Boolean);
    for (const candidate of candidates) {
        try {
            execFileSync(candidate, ['-c', 'import sys, pip; sys.exit(sys.version_info < (3, 10))'], { stdio: 'ignore' });
            return candidate;
        } catch {
            continue;
        }
    }
    fail(`Python 3.10 or newer with pip is needed to put the server into the package; tried ${candidates.join(', ')}`);
}

function run(program, parameters) {
    try {
        // vsce prints pages about every package; they are of interest only if it fails.
        const output = program === process.execPath ? 'pipe' : 'inherit';
        execFileSync(program, parameters, { encoding: 'utf8', stdio: ['ignore', output, output], maxBuffer: 1 << 26 });
    } catch (error) {
        fail(`${error.stdout ?? ''}${error.stderr ?? error.message}`);
    }
}

function fail(message) {
    console.error(message.trimEnd());
    process.exit(1);
}

/** The licences of the packages that went into the one file. */
function writeNotices(inputs) {
    const packages = new Set(inputs.map((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]).filter(Boolean));
    const notices = [...packages].sort().map((folder) => {
        const { name, version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
        const licence = fs.readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
        return `${'='.repeat(100)}\n${name} ${version}\n\n${licence ? fs.readFileSync(path.join(folder, licence), 'utf8').trim() : ''}\n`;
    });
    fs.writeFileSync('out/THIRD_PARTY_NOTICES.txt', `The client carries these packages, each under its own licence.\n\n${notices.join('\n')}`);
}

/** A hash over files and folders, names included. */
function stateOf(files) {
    const hash = createHash('sha256');
    for (const file of files.filter((file) => fs.existsSync(file))) {
        if (fs.statSync(file).isDirectory()) {
            hash.update(stateOf(fs.readdirSync(file).sort().map((entry) => path.join(file, entry))));
        } else {
            hash.update(file).update(fs.readFileSync(file));
        }
    }
    return hash.digest('hex');
}
