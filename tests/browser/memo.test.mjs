// The memo site in a real browser. The site must already run:
//
//   BASE_URL=http://127.0.0.1:8080 SCREENSHOT=front.png node --test tests/browser/memo.test.mjs
//
// Needs Debian's nodejs (18 or later), chromium and chromium-driver, and nothing from npm.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { Browser, startChromedriver } from './webdriver.mjs';

const site = process.env.BASE_URL?.replace(/\/$/, '');
if (!site) throw new Error('BASE_URL is not set: the address of the running memo site');

// Each run has its own name, because the site may have been tested before.
const author = `mari${Math.floor(Date.now() / 1000) % 1_000_000}`;
const password = `password of ${author}`;

let driver;
let mari; // writes
let reader; // only looks; never signs in

before(async () => {
  driver = await startChromedriver();
  mari = await Browser.open(driver.url);
  reader = await Browser.open(driver.url);
});

after(async () => {
  await reader?.close();
  await mari?.close();
  await driver?.stop();
});

/** Writes a memo on "My page" and returns the address it was given. */
async function write(content, { isPrivate = false } = {}) {
  await mari.go(`${site}/mypage`);
  await mari.type('#content', content);
  if (isPrivate) await mari.click('input[name=is_private]');
  await mari.click('.write button');
  await mari.arriveAt(/\/memo\/\d+$/);
  return mari.url();
}

test('a visitor signs up and is greeted by name', async () => {
  await mari.go(`${site}/`);
  await mari.click('.session .button');
  await mari.arriveAt(/\/signup$/);
  await mari.type('#name', author);
  await mari.type('#password', password);
  await mari.click('.account button');
  await mari.arriveAt(/\/mypage$/);
  await mari.see(new RegExp(`signed in as ${author}`), '#session');
});

test('the public front page, the same for everybody, knows her name too, without a script', async () => {
  await mari.go(`${site}/`);
  await mari.see(new RegExp(`signed in as ${author}`), '#session');
  assert.equal(await mari.evaluate('document.scripts.length'), 0);
  await reader.go(`${site}/`);
  await reader.see(/Sign in/, '#session');
});

let first;
let second;
let third;

test('a memo she writes is on the front page for everybody', async () => {
  await reader.go(`${site}/`);
  const countBefore = Number((await reader.text('#total')).replaceAll(',', ''));

  first = await write(
    '# Tea at four\n\nGreen, *70 °C*, two minutes. The water comes off the boil while the cups are being warmed; '
      + 'the second pot is the better one.\n\n'
      + "- not too strong\n- no sugar\n- something with plums\n\n<script>document.title = 'broken in'</script>",
  );
  await mari.see(/<script>/, '.text'); // as text
  assert.match(await mari.evaluate('document.title'), /^Tea at four/);

  await reader.go(`${site}/`);
  assert.equal(await reader.text('.memos li:first-child .title'), 'Tea at four');
  assert.equal(await reader.text('.memos li:first-child .author'), author);
  assert.equal(Number((await reader.text('#total')).replaceAll(',', '')), countBefore + 1);
  await reader.click('.memos li:first-child .title');
  await reader.arriveAt(/\/memo\/\d+$/);
  assert.equal(await reader.url(), first);
  assert.equal(await reader.evaluate('document.querySelector(".text em").textContent'), '70 °C');
});

test('a private memo is shown to her and to nobody else', async () => {
  second = await write('# Secret garden\n\nUnder the fern.', { isPrivate: true });
  await mari.see(/Under the fern/);

  await reader.go(second);
  await reader.see(/Not found/);
  assert.doesNotMatch(await reader.text(), /Secret|fern/);
  // The console reports the 404 that the test requested.
  assert.match((await reader.complaints()).join('\n'), /404/);
  await reader.go(`${site}/`);
  assert.doesNotMatch(await reader.text(), /Secret garden/);
});

test('older and newer lead others past the private memo, and her through it', async () => {
  third = await write('# Plum cake\n\nButter, sugar, two eggs, flour, and as many plums as will stand beside each other.');

  await reader.go(first);
  await reader.click('#neighbours .newer');
  await reader.arriveAt(new RegExp(`${new URL(third).pathname}$`));
  await reader.click('#neighbours .older');
  await reader.arriveAt(new RegExp(`${new URL(first).pathname}$`));

  await mari.go(third);
  await mari.see(/by you/, '#neighbours'); // her own links
  await mari.click('#neighbours .older');
  await mari.arriveAt(new RegExp(`${new URL(second).pathname}$`));
  await mari.see(/Under the fern/);
  await mari.click('#neighbours .older');
  await mari.arriveAt(new RegExp(`${new URL(first).pathname}$`));
});

test('the front page looks as it should', async () => {
  await mari.go(`${site}/`);
  await mari.see(new RegExp(`signed in as ${author}`), '#session');
  assert.equal(await mari.evaluate('getComputedStyle(document.querySelector(".memos")).listStyleType'), 'none', 'the style sheet works');
  assert.ok(await mari.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing sticks out');
  assert.ok(await mari.evaluate('document.querySelector(".brand img").naturalWidth > 0'), 'the icon is there');
  assert.ok(!(await mari.evaluate('document.documentElement.innerHTML')).includes('<!--#'), 'every include is filled');
  if (process.env.SCREENSHOT) await writeFile(process.env.SCREENSHOT, await mari.screenshot());
});

test('after signing out she is a stranger', async () => {
  await mari.click('#session button');
  await mari.see(/Sign in/, '#session');
  await mari.go(`${site}/`);
  await mari.see(/Sign in/, '#session');
  assert.doesNotMatch(await mari.text('#session'), new RegExp(author));
  await mari.go(second);
  await mari.see(/Not found/);
  assert.doesNotMatch(await mari.text(), /Secret|fern/);
  assert.match((await mari.complaints()).join('\n'), /404/);
  await mari.go(`${site}/mypage`);
  await mari.arriveAt(/\/signin$/);
});

test('she signs in again and finds her memos', async () => {
  await mari.type('#name', author);
  await mari.type('#password', password);
  await mari.click('.account button');
  await mari.arriveAt(/\/mypage$/);
  await mari.see(/Plum cake[^]*Secret garden[^]*Tea at four/, '.memos');
});

test('no page had anything to complain about', async () => {
  assert.deepEqual(await mari.complaints(), []);
  assert.deepEqual(await reader.complaints(), []);
});
