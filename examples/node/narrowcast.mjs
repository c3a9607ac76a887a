// A small client of narrowcast in another language, written from docs/wire.md: reads a subscription from the log.
//
//   npm install && node narrowcast.mjs URL 'm => m.symbol === "IBM" && m.price > 100' [--system nc] [--shard 0] [--count N]
//
// The log has every message, so the filter is exact and each message comes once, in order. It prints one JSON line per
// message: its sequence number, its index in the entry, and its attributes. `node narrowcast.mjs --vectors FILE` decodes
// the test vectors of the page.

import { createDecipheriv } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { parseArgs } from 'node:util';
import { RecordBatchReader, Type } from 'apache-arrow';

const crc = crc32 ?? crcTable();

function crcTable() {
  const table = new Uint32Array(256).map((_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n >>> 0;
  });
  return (data) => {
    let c = 0xffffffff;
    for (const byte of data) c = table[(c ^ byte) & 0xff] ^ (c >>> 8);
    return (c ^ 0xffffffff) >>> 0;
  };
}

// Payloads: JSON with tags, or the rows of an Arrow record batch.

function untagged(value) {
  if (Array.isArray(value)) return value.map(untagged);
  if (value === null || typeof value !== 'object') return value;
  const names = Object.keys(value);
  if (names.length === 1) {
    const [name] = names, found = value[name];
    if (name === '$time' && Number.isInteger(found)) return { time: found };
    if (name === '$decimal' && typeof found === 'string') return { decimal: found };
    if (name === '$bytes' && typeof found === 'string') return { bytes: found };
  }
  return Object.fromEntries(names.map((name) => [name, untagged(value[name])]));
}

export const decodePayload = (data) => untagged(JSON.parse(data.toString('utf8')));

function plain(value, type) {
  if (value === null || value === undefined) return null;
  switch (type.typeId) {
    case Type.Int: return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
    case Type.Decimal: return { decimal: decimal(value, type) };
    case Type.Binary: return { bytes: Buffer.from(value).toString('base64') };
    case Type.List: return Array.from(value, (each) => plain(each, type.children[0].type));
    case Type.Struct: return Object.fromEntries(type.children.map((f) => [f.name, plain(value[f.name], f.type)]));
    default: return value;
  }
}

function decimal(words, type) {
  let n = 0n;
  for (let k = words.length - 1; k >= 0; k--) n = (n << 32n) | BigInt(words[k] >>> 0);
  n = BigInt.asIntN(type.bitWidth, n);
  const digits = (n < 0n ? -n : n).toString().padStart(type.scale + 1, '0');
  const cut = digits.length - type.scale;
  return (n < 0n ? '-' : '') + (type.scale ? `${digits.slice(0, cut)}.${digits.slice(cut)}` : digits);
}

export function decodeColumns(data) {
  const batch = RecordBatchReader.from(data).readAll()[0];
  const rows = Array.from({ length: batch.numRows }, () => ({}));
  batch.schema.fields.forEach((field, k) => {
    const column = batch.getChildAt(k);
    const moments = field.type.typeId === Type.Timestamp ? column.data[0].values : null;
    rows.forEach((row, j) => {
      const value = moments ? (column.isValid(j) ? { time: Number(moments[j]) } : null) : plain(column.get(j), field.type);
      row[field.name] = value;
    });
  });
  return rows;
}

// Entries of the log.

export function decodeEntry(data) {
  if (data.length < 8 || data.toString('latin1', 0, 2) !== 'nl' || data[2] !== 1) return null;
  const body = data.subarray(0, data.length - 4);
  if (crc(body) !== data.readUInt32BE(body.length)) return null;
  const kind = data[3];
  if (kind === 2) return { kind: 'marker', epoch: data.readUInt32BE(4) };
  if (kind === 3) return { kind: 'birth' };
  if (kind !== 1 && kind !== 4) return null;
  const length = data[4], number = Number(data.readBigUInt64BE(5)), count = data.readUInt16BE(13);
  const publisher = data.toString('utf8', 15, 15 + length);
  let at = 15 + length;
  if (kind === 4) return { kind: 'columns', publisher, number, messages: decodeColumns(body.subarray(at)) };
  const messages = [];
  for (let k = 0; k < count; k++) {
    const size = data.readUInt32BE(at);
    messages.push(decodePayload(data.subarray(at + 4, at + 4 + size)));
    at += 4 + size;
  }
  return { kind: 'batch', publisher, number, messages };
}

// Frames.

export function openFrame(data, keys, name = '') {
  if (!(data[3] & 0x80)) return data;
  const key = keys[data.readUInt32BE(16)];
  if (!key) return null;
  const head = data.subarray(0, 24), rest = data.subarray(36, data.length - 16);
  const cipher = createDecipheriv('aes-128-gcm', key, data.subarray(24, 36));
  cipher.setAAD(data[3] & 0x40 ? Buffer.concat([head, Buffer.from(name)]) : head);
  cipher.setAuthTag(data.subarray(data.length - 16));
  const opened = Buffer.concat([head, cipher.update(rest), cipher.final()]);
  opened[3] &= 0x3f;
  return opened;
}

export function decodeFrame(data) {
  if (data.toString('latin1', 0, 2) !== 'nc' || data[2] !== 3) return null;
  if (crc(data.subarray(0, data.length - 4)) !== data.readUInt32LE(data.length - 4)) return null;
  const u64 = (at) => data.readBigUInt64BE(at).toString();
  const frame = { kind: data[3], system: u64(4), epoch: data.readUInt32BE(12), channel: data.readUInt32BE(16),
    plan: data.readUInt32BE(20) };
  if (frame.kind === 2) {
    return { ...frame, on: data[24] === 1, turn: data.readUInt32BE(26), edge: data.toString('utf8', 30, 30 + data[25]) };
  }
  Object.assign(frame, { shard: data.readUInt16BE(24), generation: u64(26), after: u64(34), upto: u64(42) });
  if (frame.kind === 3) {
    const lately = Array.from({ length: data.readUInt32BE(50) }, (_, k) => [data.readUInt32BE(54 + 12 * k), u64(58 + 12 * k)]);
    return { ...frame, lately };
  }
  const count = data.readUInt16BE(50);
  if (frame.kind === 4) {
    const entry = data.readBigUInt64BE(52);
    const rows = decodeColumns(data.subarray(60 + 6 * count, data.length - 4));
    const messages = rows.map((message, k) => ({
      place: (entry + BigInt(data.readUInt16BE(60 + 2 * k)) + 1n).toString(),
      flow: data.readUInt32BE(60 + 2 * count + 4 * k), message,
    }));
    return { ...frame, messages };
  }
  let at = 52 + 16 * count;
  const messages = [];
  for (let k = 0; k < count; k++) {
    const head = 52 + 16 * k, size = data.readUInt32BE(head + 12);
    messages.push({ place: u64(head), flow: data.readUInt32BE(head + 8), message: decodePayload(data.subarray(at, at + size)) });
    at += size;
  }
  return { ...frame, messages };
}

// The log: direct get in batches, then again when the stream says that there is more.

export async function* readLog(connection, { system = 'nc', shard = 0, after = 0 } = {}) {
  const live = connection.subscribe(`${system}.live.${shard}.>`);
  const more = live[Symbol.asyncIterator]();
  for (;;) {
    const asked = JSON.stringify({ seq: after + 1, batch: 256, max_bytes: 4 << 20 });
    const answers = await connection.requestMany(`$JS.API.DIRECT.GET.${system}-log-${shard}`, asked,
      { strategy: 'sentinel', maxWait: 5000 });
    let got = 0;
    for await (const answer of answers) {
      if (!answer.headers?.has('Nats-Sequence')) break;
      after = Number(answer.headers.get('Nats-Sequence'));
      got += 1;
      yield { sequence: after, entry: decodeEntry(Buffer.from(answer.data)) };
    }
    if (!got) await more.next();
  }
}

async function main() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: {
    system: { type: 'string', default: 'nc' }, shard: { type: 'string', default: '0' },
    after: { type: 'string', default: '0' }, count: { type: 'string', default: 'Infinity' }, vectors: { type: 'string' },
  } });
  const big = (_, value) => (typeof value === 'bigint' ? value.toString() : value);
  if (values.vectors) {
    for (const { name, hex, key, edge } of JSON.parse(readFileSync(values.vectors))) {
      const data = Buffer.from(hex, 'hex');
      const keys = key ? { [data.readUInt32BE(16)]: Buffer.from(key, 'hex') } : {};
      const found = data.toString('latin1', 0, 2) === 'nl' ? decodeEntry(data) : decodeFrame(openFrame(data, keys, edge));
      console.log(JSON.stringify({ name, found }, big));
    }
    return;
  }
  const { connect } = await import('nats');
  const [url, filter] = positionals;
  const { username, password, host } = new URL(url);
  const login = username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : {};
  const connection = await connect({ servers: host, ...login });
  const wants = Function(`return (${filter})`)();
  let left = Number(values.count);
  const place = { system: values.system, shard: Number(values.shard), after: Number(values.after) };
  for await (const { sequence, entry } of readLog(connection, place)) {
    for (const [index, message] of (entry?.messages ?? []).entries()) {
      if (!wants(message)) continue;
      console.log(JSON.stringify([sequence, index, message], big));
      left -= 1;
      if (left <= 0) return connection.close();
    }
  }
}

await main();
