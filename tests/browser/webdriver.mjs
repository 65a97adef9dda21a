// A WebDriver client with only the functions that the tests beside it need
// (https://www.w3.org/TR/webdriver2/). It uses only Node's standard library. Debian's chromedriver
// speaks the protocol over plain HTTP. A browser automation package would need megabytes and an
// installation step for these few calls.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ELEMENT = 'element-6066-11e4-a52e-4f735466cecf';
const LONGEST_WAIT_MS = 30_000 * Number(process.env.KIRIN_TEST_WAIT_FACTOR || 1);
const LOOK_EVERY_MS = 25;

/** Starts chromedriver on a free port; resolves to { url, stop }. */
export async function startChromedriver() {
  const child = spawn('chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const port = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`chromedriver ended with ${code}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const match = /started successfully on port (\d+)/.exec(line);
      if (match) resolve(Number(match[1]));
    });
  });
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** One browser with an empty profile. */
export class Browser {
  static async open(driverUrl, {
    width = 1200, height = 900, javascript = true, insecureCertificates = false, quic,
  } = {}) {
    // Chromium uses QUIC only with a certificate of a public authority, unless it is told both.
    const quicArgs = quic
      ? [`--ignore-certificate-errors-spki-list=${quic.key}`, `--origin-to-force-quic-on=${quic.host}`]
      : ['--disable-quic'];
    const profile = await mkdtemp(join(tmpdir(), 'memo-browser-'));
    const { sessionId } = await call('POST', `${driverUrl}/session`, {
      capabilities: {
        alwaysMatch: {
          browserName: 'chrome',
          acceptInsecureCerts: insecureCertificates,
          'goog:chromeOptions': {
            // 2 stands for "block".
            prefs: javascript ? {} : { 'profile.managed_default_content_settings.javascript': 2 },
            args: [
              '--headless', '--no-sandbox', '--disable-gpu',
              '--disable-dev-shm-usage', ...quicArgs, '--no-first-run',
              '--disable-background-networking', '--disable-component-update', '--disable-sync',
              `--user-data-dir=${profile}`, `--window-size=${width},${height}`,
            ],
          },
          'goog:loggingPrefs': { browser: 'ALL' },
        },
      },
    });
    return new Browser(`${driverUrl}/session/${sessionId}`, profile);
  }

  constructor(session, profile) {
    this.session = session;
    this.profile = profile;
  }

  async close() {
    await call('DELETE', this.session);
    await rm(this.profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  go(url) {
    return call('POST', `${this.session}/url`, { url });
  }

  url() {
    return call('GET', `${this.session}/url`);
  }

  /** The element, waited for. */
  find(css) {
    return this.until(`an element ${css}`, async () => {
      const found = await call('POST', `${this.session}/elements`, { using: 'css selector', value: css });
      return found.length > 0 ? `${this.session}/element/${found[0][ELEMENT]}` : undefined;
    });
  }

  async type(css, text) {
    await call('POST', `${await this.find(css)}/value`, { text });
  }

  async click(css) {
    await call('POST', `${await this.find(css)}/click`, {});
  }

  /** What a person sees of the page, or of the first element that matches. */
  async text(css = 'body') {
    return call('GET', `${await this.find(css)}/text`);
  }

  /** The value of an expression in the page. */
  evaluate(expression) {
    return call('POST', `${this.session}/execute/sync`, { script: `return (${expression})`, args: [] });
  }

  /** The result of the body of an asynchronous function. */
  evaluateLater(body) {
    const script = `const done = arguments[arguments.length - 1];
      (async () => { ${body} })().then(done, (error) => done(String(error)));`;
    return call('POST', `${this.session}/execute/async`, { script, args: [] });
  }

  /** Waits until the page's text satisfies the pattern. */
  see(pattern, css = 'body') {
    return this.until(`${pattern} in ${css}`, async () => pattern.test(await this.text(css)) || undefined, () => this.text());
  }

  /** Waits until the address is the one wanted. */
  arriveAt(pattern) {
    return this.until(`the address ${pattern}`, async () => pattern.test(await this.url()) || undefined, () => this.url());
  }

  /** Errors that the page or its loading has logged since the last call. */
  async complaints() {
    const entries = await call('POST', `${this.session}/se/log`, { type: 'browser' });
    return entries.filter(({ level }) => level === 'SEVERE').map(({ message }) => message);
  }

  async screenshot() {
    return Buffer.from(await call('GET', `${this.session}/screenshot`), 'base64');
  }

  async until(what, look, report = () => '') {
    const deadline = Date.now() + LONGEST_WAIT_MS;
    for (;;) {
      // A page that is being replaced has no elements. The next try finds the new page.
      const seen = await look().catch((error) => {
        if (error.code === 'stale element reference' || error.code === 'no such element') return undefined;
        throw error;
      });
      if (seen !== undefined) return seen;
      if (Date.now() > deadline) throw new Error(`waited in vain for ${what}; there is: ${await report()}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }
}

async function call(method, url, body) {
  const response = await fetch(url, { method, body: body && JSON.stringify(body) });
  const { value } = await response.json();
  if (!response.ok) {
    throw Object.assign(new Error(`${method} ${new URL(url).pathname}: ${value.message}`), { code: value.error });
  }
  return value;
}
