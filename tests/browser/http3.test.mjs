// HTTP/3 in a real browser: a page, many small files and a file of a megabyte pass over it. Kirin
// must already run with the certificate of SPKI, which is the base64 of the SHA-256 of its public
// key:
//
//   BASE_URL=https://127.0.0.1:8443 SPKI=... node --test tests/browser/http3.test.mjs

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, startChromedriver } from './webdriver.mjs';

const site = process.env.BASE_URL?.replace(/\/$/, '');
const spki = process.env.SPKI;
if (!site || !spki) throw new Error('BASE_URL or SPKI is not set');

let driver;
let browser;

before(async () => {
  driver = await startChromedriver();
  browser = await Browser.open(driver.url, { quic: { key: spki, host: new URL(site).host } });
});

after(async () => {
  await browser?.close();
  await driver?.stop();
});

const protocol = () => browser.evaluate(
  "performance.getEntriesByType('navigation')[0].nextHopProtocol",
);

test('a page comes over HTTP/3', async () => {
  await browser.go(`${site}/`);
  assert.equal(await protocol(), 'h3');
});

test('a large file and many small ones pass over HTTP/3', async () => {
  const seen = await browser.evaluateLater(`
    const sizes = await Promise.all(Array.from({ length: 50 }, async (_, number) => {
      const answer = await fetch('/small.txt?' + number);
      return (await answer.text()).length;
    }));
    const large = await (await fetch('/large.bin')).arrayBuffer();
    const bytes = new Uint8Array(large);
    const wrong = bytes.findIndex((byte, at) => byte !== (at * 7 + (at >> 8)) % 251);
    const protocols = new Set(performance.getEntriesByType('resource')
      .filter((entry) => /small|large/.test(entry.name)).map((entry) => entry.nextHopProtocol));
    return { sizes: [...new Set(sizes)], length: bytes.length, wrong, protocols: [...protocols] };
  `);
  assert.deepEqual(seen, { sizes: [6], length: 1_000_000, wrong: -1, protocols: ['h3'] });
});
