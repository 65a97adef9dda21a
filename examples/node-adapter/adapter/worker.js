// A worker: loads the application, accepts connections of Kirin, and answers their requests.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const net = require('node:net');
const { pathToFileURL } = require('node:url');
const { Exchange } = require('./exchange.js');
const { parse } = require('./request.js');

// How many requests a worker serves at the same time, each over a connection of its own.
const CONNECTIONS = 100;

const [application, generation, maxRequests] = process.argv.splice(2);
process.argv[1] = application;

const connections = new Set();
// Requests that the application has not done with. It may go on after the response.
const running = new Set();
const current = new AsyncLocalStorage();
let app;
let requests = 0;
let isLeaving = false;

class Connection {
  // The bytes that have come and belong to no request yet, and how many the next one needs.
  parts = [];
  size = 0;
  needed = 1;
  exchange = null;

  constructor(socket) {
    this.socket = socket;
    connections.add(this);
    socket.write(`KIRIN/1 pid=${process.pid} generation=${generation} adapter=node/0.1`);
    socket.write(` connections=${CONNECTIONS}\n`);
    socket.on('data', (part) => this.take(part));
    socket.on('end', () => this.end());
    // Errors of the application, which ends its response with them, have no system call.
    socket.on('error', (error) => error.syscall && this.end());
    socket.on('drain', () => this.exchange?.response.emit('drain'));
    socket.on('close', () => {
      connections.delete(this);
      running.delete(this.exchange);
      this.exchange?.request.destroy();
      endIfDone();
    });
  }

  // Kirin has closed the connection: the client has left or the request is overdue, or nobody needs
  // the connection any more.
  end() {
    if (this.exchange) this.exchange.isClientGone = true;
    this.socket.destroy();
  }

  take(part) {
    this.parts.push(part);
    this.size += part.length;
    if (!this.exchange && this.size >= this.needed) this.read();
  }

  // Serves the next request if all of it is there.
  read() {
    const bytes = Buffer.concat(this.parts);
    const { env, start, needed } = parse(bytes);
    const rest = bytes.subarray(needed);
    const isComplete = env && bytes.length >= needed;
    [this.parts, this.needed] = isComplete ? [[rest], 1] : [[bytes], needed];
    if (!isComplete) return;
    this.size = rest.length;
    this.serve(new Exchange(this.socket, env, bytes.subarray(start, needed)));
  }

  async serve(exchange) {
    this.exchange = exchange;
    running.add(exchange);
    requests += 1;
    // Kirin closes the other connections. Requests that it sends before are served.
    if (requests >= Number(maxRequests)) takeNoMore();
    exchange.response.isLast = () => isLeaving;
    exchange.response.on('finish', () => this.next());
    await current.run(exchange, () => exchange.answer(app));
    running.delete(exchange);
    endIfDone();
  }

  next() {
    this.exchange.close();
    this.exchange = null;
    if (this.size > 0) this.read();
    else if (isLeaving) this.socket.destroy();
  }
}

function takeNoMore() {
  if (isLeaving) return;
  isLeaving = true;
  if (process.connected) process.send(['leaving']);
  server.close();
}

// Ends this process when its requests have ended.
function leave() {
  takeNoMore();
  for (const { exchange, size, socket } of connections) {
    if (!exchange && size === 0) socket.destroy();
  }
  endIfDone();
}

function endIfDone() {
  if (isLeaving && connections.size === 0 && running.size === 0) process.exit(0);
}

// An error in a callback belongs to the request that has made the callback. Nobody knows what state
// it leaves behind, so another worker follows.
function takeError(error) {
  const exchange = current.getStore();
  if (exchange) exchange.fail(error);
  else process.stderr.write(`kirin: worker ${process.pid}: ${error?.stack ?? error}\n`);
  leave();
}

async function load() {
  try {
    app = (await import(pathToFileURL(application))).default;
    if (typeof app === 'function') return true;
    throw new Error(`${application} must export a function (request, response)`);
  } catch (error) {
    process.send(['failed', String(error?.stack ?? error)]);
    return false;
  }
}

const server = net.createServer((socket) => new Connection(socket));
process.on('SIGTERM', leave);
process.on('disconnect', leave);
load().then((isLoaded) => {
  if (!isLoaded || isLeaving) return;
  process.on('uncaughtException', takeError);
  server.listen({ fd: 3 }, () => process.send(['ready']));
});
