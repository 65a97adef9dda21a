// The application: a function as Node's `http` module has them, without a server.
'use strict';

const { createHash } = require('node:crypto');
const { setTimeout: wait } = require('node:timers/promises');

// Ends the wait of a request for another one.
let meet = null;

async function count(response) {
  for (const number of [3, 2, 1]) {
    response.write(`${number}\n`);
    await wait(200);
  }
  response.end('go\n');
}

async function upload(request, response) {
  const hash = createHash('sha256');
  for await (const part of request) hash.update(part);
  response.end(`${hash.digest('hex')}\n`);
}

// Two requests wait for each other.
async function meeting(response) {
  if (meet) meet();
  else await new Promise((met) => { meet = met; });
  meet = null;
  response.end('met\n');
}

module.exports = async function app(request, response) {
  const [path] = request.url.split('?');
  response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  if (path === '/') {
    return response.end(`Hello, ${request.socket.remoteAddress}. This is Node.\n`);
  }
  if (path === '/count') return count(response);
  if (path === '/upload') return upload(request, response);
  if (path === '/meet') return meeting(response);
  if (path === '/fail') throw new Error('a bad day');
  response.statusCode = 404;
  return response.end('There is no such page.\n');
};
