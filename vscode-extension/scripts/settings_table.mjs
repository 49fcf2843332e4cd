// Writes the table of settings in README.md from package.json. With --check it changes nothing and fails if the table is out of date.
import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

process.chdir(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const { contributes } = JSON.parse(fs.readFileSync('package.json', 'utf8'));
const rows = contributes.configuration.flatMap(({ properties }) =>
    Object.entries(properties).map(([name, { default: value, markdownDescription, enum: words, enumDescriptions }]) => {
        const choices = words ? ` ${words.map((word, index) => `\`${word}\`: ${lowerFirst(enumDescriptions[index])}`).join(' ')}` : '';
        const description = `${markdownDescription}${choices}`.replace(/\n+/g, ' ').replace(/`#(.+?)#`/g, '`$1`').replace(/\|/g, '\\|');
        return `| \`${name}\` | \`${JSON.stringify(value)}\` | ${description} |`;
    }),
);
const table = ['| Setting | Default | |', '|---|---|---|', ...rows].join('\n');
const before = fs.readFileSync('README.md', 'utf8');
const after = before.replace(/(<!-- settings: .*? -->\n)[\s\S]*?(<!-- \/settings -->)/, (_, head, tail) => `${head}\n${table}\n\n${tail}`);
if (process.argv.includes('--check')) {
    if (before !== after) {
        console.error('The settings in README.md are not those of package.json: run `npm run settings-table`.');
        process.exit(1);
    }
} else {
    fs.writeFileSync('README.md', after);
}

function lowerFirst(text) {
    return text.charAt(0).toLowerCase() + text.slice(1);
}
