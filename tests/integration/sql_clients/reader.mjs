// Runs statements that it reads from its input, as an application with node-postgres does, and prints what they give.
import { readFileSync } from 'node:fs';
import pg from 'pg';

const [STATEMENT, ROW, FIELD] = ['\x1d', '\x1e', '\x1f'];
const asText = { getTypeParser: () => (value) => value };
const client = new pg.Client({ connectionString: process.argv[2] });
await client.connect();
const answers = [];
for (const asked of readFileSync(0, 'utf8').split(STATEMENT)) {
  const [text, ...fields] = asked.split(FIELD);
  const values = fields.map((field) => {
    const value = field.slice(field.indexOf('=') + 1);
    return field.startsWith('timestamptz=') ? new Date(value) : value;
  });
  const { rows } = await client.query({ text, values, rowMode: 'array', types: asText });
  answers.push(rows.map((row) => row.map((value) => value ?? '').join(FIELD)).join(ROW));
}
await client.end();
process.stdout.write(answers.join(STATEMENT));
