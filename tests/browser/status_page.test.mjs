// The status page in a real browser, with and without JavaScript. The site must already run:
//
//   BASE_URL=http://127.0.0.1:8080 ADMIN_URL=http://127.0.0.1:8081 node --test tests/browser/status_page.test.mjs
//
// STATUS_SCREENSHOT names where a picture of the page goes.

import assert from 'node:assert/strict';
import { request } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { Browser, startChromedriver } from './webdriver.mjs';

const site = process.env.BASE_URL?.replace(/\/$/, '');
const admin = process.env.ADMIN_URL?.replace(/\/$/, '');
if (!site || !admin) throw new Error('BASE_URL or ADMIN_URL is not set');

let driver;
let visitor;
let plain; // without JavaScript
let loading = true;
let load;

/** Sends a target as it is, which `fetch` would not. */
const send = (path) => new Promise((resolve, reject) => {
  const { hostname, port } = new URL(site);
  request({ hostname, port, path }, (answer) => answer.resume().on('end', resolve)).on('error', reject).end();
});

/** Sends requests as visitors do, until the tests end. */
async function visit() {
  for (let round = 1; loading; round++) {
    await send('/');
    await send(`/memo/${1 + round % 40}`);
    if (round % 3 === 0) await send('/memo.css');
    if (round % 5 === 0) await send(`/recent/${round % 4}`);
    if (round % 7 === 0) await send('/signin');
    await new Promise((resolve) => setTimeout(resolve, 8 + 6 * Math.sin(round / 60)));
  }
}

before(async () => {
  driver = await startChromedriver();
  visitor = await Browser.open(driver.url, { height: 1150 });
  plain = await Browser.open(driver.url, { javascript: false });
  load = visit();
});

after(async () => {
  loading = false;
  await load;
  await plain?.close();
  await visitor?.close();
  await driver?.stop();
});

test('without JavaScript the numbers are there, and the page reloads itself', async () => {
  await send('/memo/1');
  await plain.go(`${admin}/`);
  await plain.see(/GET \/memo\/\{id\}/);
  await plain.see(/requests\/s/);
  const requests = async () => Number(await call(plain, '#numbers', 'data-requests'));
  const first = await requests();
  await plain.until('a later page', async () => await requests() > first || undefined);
  assert.equal(await call(plain, '#plots', 'hidden'), 'true');
});

test('a script draws plots from later numbers, and nothing is refused', async () => {
  await visitor.go(`${admin}/`);
  await visitor.until('points of a plot', async () =>
    await visitor.evaluate(`document.querySelector('#plots polyline').getAttribute('points')?.split(' ').length >= 3`) || undefined);
  const uptime = () => visitor.evaluate(`Number(document.getElementById('numbers').dataset.uptime)`);
  const first = await uptime();
  await visitor.until('newer numbers', async () => await uptime() > first || undefined);
  await visitor.click('#pause');
  await visitor.see(/Continue/, '#pause');
  const paused = await uptime();
  await new Promise((resolve) => setTimeout(resolve, 2500));
  assert.equal(await uptime(), paused);
  await visitor.click('#pause');
  assert.deepEqual(await visitor.complaints(), []);
});

test('paths of strangers are text', async () => {
  await send(`/'"><img/src=x/onerror=alert(1)>`);
  await send('/<script>document.title=1</script>');
  await visitor.go(`${admin}/`);
  await visitor.see(/<script>document\.title=1</);
  await visitor.see(/'"><img/);
  assert.equal(await visitor.evaluate('document.images.length'), 0);
  assert.equal(await visitor.evaluate('document.scripts.length'), 1);
  assert.equal(await visitor.evaluate('document.title'), 'Kirin status');
  assert.deepEqual(await visitor.complaints(), []);
});

test('the plots fill up', { skip: !process.env.STATUS_SCREENSHOT }, async () => {
  await visitor.go(`${admin}/`);
  await new Promise((resolve) => setTimeout(resolve, 75_000));
  await writeFile(process.env.STATUS_SCREENSHOT, await visitor.screenshot());
});

/** The attribute of an element, which a browser without JavaScript tells, too. */
async function call(browser, css, attribute) {
  const response = await fetch(`${await browser.find(css)}/attribute/${attribute}`);
  return (await response.json()).value;
}
