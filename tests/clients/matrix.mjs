// Prints what a driver of Node.js does: a cell a line, its name, a tab, and JSON.
import { readFileSync } from "node:fs";

const login = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: "ann",
  password: process.env.PGPASSWORD,
  database: "tacit",
  ssl: { ca: readFileSync(process.env.AUTHORITY), rejectUnauthorized: true },
};
const DATES = "SELECT joined::text AS v FROM people WHERE joined BETWEEN $1 AND $2 GROUP BY 1 ORDER BY 1";
const MOMENTS = "SELECT joined::text AS v FROM people WHERE joined > $1::timestamp GROUP BY 1 ORDER BY 1";
const INTERVALS =
  "SELECT joined::text AS v FROM people WHERE joined > DATE '2025-12-29' + $1::interval GROUP BY 1 ORDER BY 1";
const LISTS = "SELECT city AS v FROM people WHERE city = ANY($1) GROUP BY 1 ORDER BY 1";
const CITIES = "SELECT city AS v FROM people GROUP BY 1 ORDER BY 1";
const AGED = "SELECT age AS v FROM people WHERE age = $1 GROUP BY 1";
const noon = new Date("2025-12-29T12:00:00Z");

function print(cell, value) {
  console.log(`${cell}\t${JSON.stringify(value)}`);
}

async function run(ask, name) {
  print("dates", await ask(DATES, [new Date(2025, 2, 1), new Date(2025, 2, 3)]));
  print("timestamps", await ask(MOMENTS, [noon]));
  print("intervals", await ask(INTERVALS, ["1 day"]));
  print("arrays", await ask(LISTS, [["Oslo", "Rome"]]));
  print("NULLs", await ask(CITIES, []));
  const ages = [];
  for (let age = 30; age < 36; age++) ages.push(Number((await ask(AGED, [age], name))[0]));
  print("prepared", ages);
}

if (process.argv[2] === "node-postgres") {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ ...login, max: 1 });
  const client = await pool.connect();
  await run(async (text, values, name) => (await client.query({ text, values, name })).rows.map((row) => row.v), "aged");
  const cities = await client.query("SELECT city FROM people GROUP BY 1");
  print("metadata", cities.fields.map((field) => field.name));
  await client.query("BEGIN");
  await client.query(`DECLARE c CURSOR FOR ${CITIES}`);
  const some = await client.query("FETCH 3 FROM c");
  print("cursors", some.rows.length + (await client.query("FETCH ALL FROM c")).rows.length);
  await client.query("COMMIT");
  await client.query("DISCARD ALL");
  client.release();
  print("pool reset", (await pool.query("SELECT 1 AS v")).rows[0].v === 1);
  await pool.end();
} else {
  const { default: postgres } = await import("postgres");
  const sql = postgres({ ...login, max: 1 });
  await run(async (text, values, name) => (await sql.unsafe(text, values, { prepare: Boolean(name) })).map((row) => row.v), "aged");
  const cities = await sql`SELECT city FROM people GROUP BY 1`;
  print("metadata", cities.columns.map((column) => column.name));
  let n = 0;
  for await (const rows of sql.unsafe(CITIES).cursor(3)) n += rows.length;
  print("cursors", n);
  const kept = await sql.reserve();
  await kept.unsafe("DISCARD ALL");
  kept.release();
  print("pool reset", (await sql`SELECT 1 AS v`)[0].v === 1);
  await sql.end();
}
