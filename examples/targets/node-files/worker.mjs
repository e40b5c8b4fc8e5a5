// A worker in Node.js whose queue is a folder: one file for each job, there after a rename, gone after the job was accepted.

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, unlinkSync, writeSync } from "node:fs";

const QUEUE = "queue";

function synced(path, flags, text) {
  const file = openSync(path, flags);
  if (text !== undefined) writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
}

function enqueue(job, url) {
  synced(`${QUEUE}/${job}.new`, "w", JSON.stringify({ job, url }));
  renameSync(`${QUEUE}/${job}.new`, `${QUEUE}/${job}.json`);
  synced(QUEUE, "r");
}

async function send({ job, url }) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": job };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ job }), signal: AbortSignal.timeout(5000) });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`answered ${answer.status}`);
}

const waiting = () => readdirSync(QUEUE).filter((name) => name.endsWith(".json"));

async function work() {
  for (let names = waiting(); names.length > 0; names = waiting()) {
    for (const name of names) {
      try {
        await send(JSON.parse(readFileSync(`${QUEUE}/${name}`, "utf8")));
        unlinkSync(`${QUEUE}/${name}`);
      } catch (error) {
        console.error(`${name}: ${error.message}; again`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }
}

const [command, ...rest] = process.argv.slice(2);
mkdirSync(QUEUE, { recursive: true });
if (command === "enqueue") enqueue(...rest);
else await work();
process.exit(0);
