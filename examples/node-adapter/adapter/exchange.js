// A request and its response, as Node's own HTTP server hands them to an application.
'use strict';

const http = require('node:http');

// Fields that an application must not write: they are about the connection, or the adapter's own.
const NOT_FOR_APPLICATIONS = ['connection', 'keep-alive', 'kirin-file', 'kirin-cleanup'];

// Node writes an HTTP/1.1 response, and this is what Kirin reads.
class Response extends http.ServerResponse {
  // A body of another length than the application says is an error: Kirin would wait for the rest.
  strictContentLength = true;
  // Whether the worker leaves after this response.
  isLast = () => false;

  writeHead(status, reason, fields) {
    const given = (typeof reason === 'string' ? fields : reason) ?? {};
    if (Array.isArray(given)) {
      const pairs = given.flat();
      for (let at = 0; at < pairs.length; at += 2) this.appendHeader(pairs[at], pairs[at + 1]);
    } else {
      for (const [name, value] of Object.entries(given)) this.setHeader(name, value);
    }
    for (const name of NOT_FOR_APPLICATIONS) this.removeHeader(name);
    if (this.isLast()) this.setHeader('Connection', 'close');
    // Kirin would wait for the response that follows an informational one.
    if (Number(status) < 200) throw new RangeError(`${status} is no status of a response`);
    return super.writeHead(status);
  }
}

function toName(text) {
  return text.toLowerCase().replaceAll('_', '-');
}

class Exchange {
  isClientGone = false;

  constructor(socket, env, body) {
    this.socket = socket;
    this.env = env;
    Object.defineProperty(socket, 'remoteAddress', { value: env.REMOTE_ADDR, configurable: true });
    socket.encrypted = env.HTTPS === 'on';

    const request = new http.IncomingMessage(socket);
    request.method = env.REQUEST_METHOD;
    request.url = env.REQUEST_URI;
    request.env = env;
    for (const [name, value] of Object.entries(env)) {
      const field = /^(?:HTTP_(.*)|(CONTENT_.*))$/s.exec(name);
      if (field) request.headers[toName(field[1] ?? field[2])] = value;
    }
    // Kirin's own connection is always HTTP/1.1.
    [request.httpVersionMajor, request.httpVersionMinor] = [1, 1];
    this.request = request;
    this.response = new Response(request);
    request.httpVersion = env.SERVER_PROTOCOL.replace('HTTP/', '');
    const [major, minor = 0] = request.httpVersion.split('.');
    [request.httpVersionMajor, request.httpVersionMinor] = [Number(major), Number(minor)];
    request.push(body);
    request.push(null);
    request.complete = true;
    this.response.assignSocket(socket);
  }

  async answer(app) {
    try {
      await app(this.request, this.response);
    } catch (error) {
      this.fail(error);
    }
  }

  // Logs an error. The client gets 500, or an incomplete response if it has a part of one.
  fail(error) {
    if (this.isClientGone) return;
    const { method, url } = this.request;
    const text = String(error?.stack ?? error).replaceAll(/\n(?!\s)/g, '\n  ');
    const [first, ...more] = text.split('\n');
    const line = `${method} ${url}: ${first} request_id=${this.env.HTTP_X_REQUEST_ID}`;
    process.stderr.write(`kirin: worker ${process.pid}: ${[line, ...more].join('\n')}\n`);
    const { response } = this;
    if (response.headersSent) {
      if (!response.writableEnded) this.socket.destroy();
      return;
    }
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    response.writeHead(500, { 'Content-Type': 'text/plain' });
    response.end('Internal Server Error\n');
  }

  // Gives the connection back after the response.
  close() {
    this.response.detachSocket(this.socket);
    this.response.destroyed = true;
    this.response.emit('close');
  }
}

module.exports = { Exchange };
