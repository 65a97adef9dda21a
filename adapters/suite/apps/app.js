// The application of the adapter suite's core for Node. README.md says what each path does.
'use strict';

const { execFileSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { Readable } = require('node:stream');
const { pipeline } = require('node:stream/promises');
const { setTimeout: wait } = require('node:timers/promises');

const DIRECTORY = process.cwd();
const TABLE = 'memo';

// The number of requests that this process has had, except for /state.
let requests = 0;

// Returns a file of the directory without the line end, or null if there is none.
function slurp(name) {
  const file = path.join(DIRECTORY, name);
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trimEnd() : null;
}

// Writes a file of the directory in one step.
function spurt(name, text) {
  const file = path.join(DIRECTORY, name);
  fs.writeFileSync(`${file}.new`, String(text));
  fs.renameSync(`${file}.new`, file);
}

// No process outlives the directory of a failed test.
async function waitForFile(name) {
  while (!fs.existsSync(path.join(DIRECTORY, name))) {
    if (!fs.existsSync(DIRECTORY)) process.exit(1);
    await wait(10);
  }
}

// Tells a test that this point is reached, and waits until the test goes on.
async function meet(name) {
  spurt(`begun.${name}`, process.pid);
  await waitForFile(`go.${name}`);
}

function hang() {
  return new Promise(() => {});
}

function hangInLoop() {
  for (;;);
}

function killSelf() {
  process.kill(process.pid, 'SIGKILL');
  hangInLoop();
}

// Returns this many bytes, all values from 0 to 250 in turn.
function pattern(length) {
  return Buffer.alloc(length, Buffer.from(Array.from({ length: 251 }, (_, value) => value)));
}

async function slurpBody(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

function counted(content) {
  return `${content.length} ${createHash('md5').update(content).digest('hex')}`;
}

function fail(text) {
  throw new Error(text);
}

function answer(response, body, status = 200, fields = {}) {
  const bytes = Buffer.from(body, 'latin1');
  const length = { 'Content-Length': bytes.length };
  response.writeHead(status, { 'Content-Type': 'text/plain', ...length, ...fields });
  response.end(bytes);
}

// Answers with parts that are made while they are sent.
async function stream(response, parts, fields = {}) {
  response.writeHead(200, { 'Content-Type': 'text/plain', ...fields });
  await pipeline(Readable.from(parts), response);
}

async function* waitBetween(name) {
  yield Buffer.from('first\n');
  await waitForFile(`go.${name}`);
  yield Buffer.from('last\n');
}

async function* noted(parts) {
  try {
    yield* parts;
  } finally {
    console.error('the body is closed');
  }
}

async function* endless(name) {
  try {
    for (;;) yield Buffer.alloc(65_536, 'x');
  } finally {
    spurt(`closed.${name}`, process.pid);
  }
}

async function* dieIn() {
  yield Buffer.from('part');
  fail('too late');
}

async function* large() {
  for (let count = 0; count < 20; count += 1) yield pattern(251_000);
}

async function killIn(response) {
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  await new Promise((sent) => response.write('part', sent));
  killSelf();
}

async function writeEndless(response) {
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  while (!response.destroyed) {
    if (!response.write(Buffer.alloc(65_536, 'x'))) {
      await new Promise((goOn) => {
        response.once('drain', goOn);
        response.once('close', goOn);
      });
    }
  }
}

const together = new Map();

// Waits until `count` requests for `name` have come.
async function meetOthers(count, name) {
  const group = together.get(name) ?? { waiting: [] };
  together.set(name, group);
  await new Promise((goOn) => {
    group.waiting.push(goOn);
    if (group.waiting.length === count) group.waiting.forEach((one) => one());
  });
}

const VERSION = slurp('version') ?? 'none';

const FIELDS = {
  '/fields/bytes': ['caf\xe9', { 'X-Latin': 'caf\xe9', 'X-UTF-8': 'caf\xc3\xa9' }],
  '/fields/repeated': ['cookies', { 'Set-Cookie': ['a=1', 'b=2'] }],
  '/fields/empty': ['empty', { 'X-Empty': '' }],
  '/fields/many': [
    'many',
    Object.fromEntries(Array.from(Array(100), (_, at) => [`X-Field-${at + 1}`, 'v'.repeat(300)])),
  ],
  '/fields/hop-by-hop': ['kept', { Connection: 'close', 'Keep-Alive': 'x' }],
  '/fields/forged': ['forged', { 'Kirin-File': '1 2 3 4 5 /etc/passwd', 'Kirin-Cleanup': '1' }],
  '/fields/line-end': ['a', { 'X-A': 'a\r\nX-Evil: b' }],
  '/fields/line-feed': ['a', { 'X-A': 'a\nX-Evil: b' }],
  '/fields/return': ['a', { 'X-A': 'a\rb' }],
  '/fields/nul': ['a', { 'X-A': 'a\0b' }],
  '/fields/name-line-end': ['a', { 'X-A: 1\r\nX-Evil': 'b' }],
  '/fields/wide': ['a', { 'X-A': '\u263a' }],
};

const ACTIONS = {
  '/scheme': ({ request, response }) => {
    answer(response, request.socket.encrypted ? 'https' : 'http');
  },
  '/change-env': ({ request, response }) => {
    request.env.HTTP_X_LEFT = 'behind';
    delete request.env.PATH_INFO;
    answer(response, 'changed');
  },
  '/echo': async ({ request, response }) => {
    const type = request.headers['content-type'] ?? 'application/octet-stream';
    const body = await slurpBody(request);
    answer(response, body, 200, { 'Content-Type': type });
  },
  '/length': async ({ request, response }) => answer(response, counted(await slurpBody(request))),
  '/input/part': async ({ request, response }) => {
    for await (const part of request) return answer(response, part.subarray(0, 5));
  },
  '/list': ({ response }) => answer(response, 'onetwo'),
  '/nothing': ({ response }) => answer(response, ''),
  '/replaced-head': ({ response }) => {
    response.setHeader('X-First', '1');
    response.removeHeader('X-First');
    answer(response, 'replaced', 503);
  },
  '/wrong-length': ({ response }) => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': '1000' });
    response.end('short');
  },
  '/iterate': ({ response }) => stream(response, noted(['one', '', 'two'])),
  '/iterate/short': ({ response }) => stream(response, ['one', 'two'], { 'Content-Length': '9' }),
  '/iterate/long': ({ response }) => stream(response, ['one', 'two'], { 'Content-Length': '3' }),
  '/iterate/length': ({ response }) => stream(response, ['one', 'two'], { 'Content-Length': '6' }),
  '/stream': ({ response }) => stream(response, ['part 1\n', 'part 2\n', 'part 3\n']),
  '/stream/wait': ({ name, response }) => stream(response, waitBetween(name)),
  '/stream/large': ({ response }) => stream(response, large()),
  '/stream/endless': ({ name, response }) => stream(response, endless(name)),
  '/writer': ({ response }) => {
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    for (const part of ['one', '', 'two']) response.write(part);
    response.end();
  },
  '/writer/endless': ({ response }) => writeEndless(response),
  '/die/before': () => fail('a bad day'),
  '/die/in-callback': () => void setImmediate(() => fail('a bad callback')),
  '/die/in': ({ response }) => {
    response.writeHead(200, { 'Content-Type': 'text/plain' });
    return new Promise((_, reject) => {
      response.write('part', () => reject(new Error('too late')));
    });
  },
  '/die/in-iterator': ({ response }) => stream(response, dieIn()),
  '/die/caught': ({ response }) => {
    try {
      fail('caught by the application');
    } catch {
      answer(response, 'caught');
    }
  },
  '/exit': () => process.exit(3),
  '/kill': () => killSelf(),
  '/kill/in': ({ response }) => killIn(response),
  '/kill/once': ({ name, response }) => {
    if (slurp(`killed.${name}`) !== null) return answer(response, 'survived');
    spurt(`killed.${name}`, '');
    return killSelf();
  },
  '/wait': async ({ name, response }) => {
    await meet(name);
    answer(response, String(process.pid));
  },
  '/hang': ({ name }) => {
    spurt(`begun.${name}`, process.pid);
    return hang();
  },
  '/hang/loop': () => hangInLoop(),
  '/cleanup': async ({ name, response }) => {
    answer(response, String(process.pid));
    await meet(name);
    console.error(`cleaned up after ${name}`);
  },
  '/cleanup/stream': async ({ name, response }) => {
    await stream(response, [String(process.pid)]);
    await meet(name);
    console.error(`cleaned up after ${name}`);
  },
  '/disconnect': async ({ name, request, response }) => {
    await slurpBody(request);
    response.once('close', () => console.error(`${name} got http.disconnect`));
    spurt(`begun.${name}`, process.pid);
  },
  '/version': ({ response }) => answer(response, VERSION),
  '/pid': ({ response }) => answer(response, String(process.pid)),
  '/parent': ({ response }) => answer(response, String(process.ppid)),
  '/random': ({ response }) => answer(response, String(Math.random())),
  '/leave': async ({ response }) => {
    const isTold = new Promise((told) => process.once('SIGTERM', told));
    process.kill(process.pid, 'SIGTERM');
    await isTold;
    answer(response, String(process.pid));
  },
  '/log': ({ name, response }) => {
    console.error(`a line for the log: ${name}`);
    answer(response, 'logged');
  },
  '/print': ({ name, response }) => {
    console.log(`a line on standard output: ${name}`);
    answer(response, 'printed');
  },
  '/program': ({ response }) => answer(response, execFileSync('echo', ['hello'])),
};

module.exports = async function app(request, response) {
  const { env } = request;
  const [name, place] = [env.QUERY_STRING, env.PATH_INFO];
  if (place === '/state') return answer(response, `${process.pid} ${requests}`);
  requests += 1;
  // Paths with a value in them.
  if (place.startsWith('/env')) {
    const variables = Object.entries(env).filter(([key]) => /^[A-Z]/.test(key));
    return answer(response, variables.map(([key, value]) => `${key}=${value}\n`).join(''));
  }
  if (place.startsWith('/bytes/')) return answer(response, pattern(Number(place.slice(7))));
  if (place.startsWith('/together/')) {
    await meetOthers(Number(place.slice(10)), name);
    return answer(response, `${process.pid} ${counted(await slurpBody(request))}`);
  }
  if (place.startsWith('/status/')) {
    response.writeHead(place.slice(8), { 'Content-Type': 'text/plain' });
    return response.end(`status ${place.slice(8)}`);
  }
  const fields = FIELDS[place];
  if (fields) return answer(response, fields[0], 200, fields[1]);
  const action = ACTIONS[place];
  if (!action) return answer(response, 'no such action', 404);
  return action({ request, response, name });
};

// What `on-load` says happens while the application is loaded.
switch (slurp('on-load')) {
  case 'die':
    throw new Error(`no such table: ${TABLE}`);
  case 'lines':
    throw new Error('no such table:\nback\\slash');
  case 'exit':
    process.exit(3);
  // falls through
  case 'hang':
    hangInLoop();
  // falls through
  case 'print':
    console.log('failed by the application\nready');
}
