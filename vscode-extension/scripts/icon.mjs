// Renders images/icon.svg to images/icon.png, 256 × 256, with the Chromium that is installed. Run it after a change of the drawing; the PNG is committed.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const images = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), 'images');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'icon-'));
const page = path.join(folder, 'icon.html');
fs.writeFileSync(page, `<style>*{margin:0;padding:0}svg{display:block}</style>${fs.readFileSync(path.join(images, 'icon.svg'), 'utf8')}`);
const options = ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--force-device-scale-factor=1', '--default-background-color=00000000'];
execFileSync(process.env.CHROMIUM ?? 'chromium', [...options, `--user-data-dir=${folder}`, '--window-size=256,256', `--screenshot=${path.join(images, 'icon.png')}`, pathToFileURL(page).href], {
    stdio: 'ignore',
});
fs.rmSync(folder, { recursive: true });
