// The documentation site in a real browser. The site must already be served:
//
//   BASE_URL=http://127.0.0.1:8080 node --test tests/browser/site.test.mjs
//
// SCREENSHOTS names a directory for pictures of the front page.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { badContrasts } from './contrast.mjs';
import { Browser, startChromedriver } from './webdriver.mjs';

const site = process.env.BASE_URL?.replace(/\/$/, '');
if (!site) throw new Error('BASE_URL is not set: the address of the site');

const PHONE = 360; // pixels
const CONTRAST = 4.5;
const JAPANESE_WORD = 'ワーカー';
// Pages with what can have a bad contrast: running text, tables, and code in several languages.
const COLOURFUL = ['/', '/tutorial/', '/configuration/', '/ssi/', '/guides/django/', '/guides/psgi/', '/lua/'];

// The elements of a page that reach beyond the screen of a phone.
const WIDE = `[...document.querySelectorAll('body *')]
  .filter((element) => element.getBoundingClientRect().right > ${PHONE} && !element.closest('pre, table'))
  .map((element) => element.outerHTML.slice(0, 200)).slice(0, 5)`;
// What a page has loaded from other hosts.
const FOREIGN = `performance.getEntriesByType('resource').map(({ name }) => name)
  .filter((name) => /^https?:/.test(name) && new URL(name).origin !== location.origin)`;

let driver;
let reader;
let pages; // Path -> { status, html, links, loads, ids }

before(async () => {
  driver = await startChromedriver();
  reader = await Browser.open(driver.url, { width: 1400 }); // From 1220 on there are tabs.
  pages = await crawl();
});

after(async () => {
  await reader?.close();
  await driver?.stop();
});

test('the pages of the site map are there', () => {
  assert.ok(pages.size > 50, `there are only ${pages.size}`);
  assert.deepEqual([...pages].filter(([, { status }]) => status !== 200).map(([path]) => path), []);
});

test('each link and each anchor leads somewhere', async () => {
  const others = new Map(); // Path of a file that is no page -> status
  const broken = [];
  let followed = 0;
  for (const [path, { links }] of pages) {
    for (const link of links) {
      const { origin, pathname, hash } = new URL(link, site + path);
      if (origin !== site) continue;
      followed++;
      const page = pages.get(pathname);
      if (!page) {
        if (!others.has(pathname)) {
          others.set(pathname, (await fetch(site + pathname, { method: 'HEAD' })).status);
        }
        if (others.get(pathname) !== 200) broken.push(`${path}: ${link}`);
      } else if (hash && !page.ids.has(decodeURIComponent(hash.slice(1)))) {
        broken.push(`${path}: ${link} has no such anchor`);
      }
    }
  }
  assert.deepEqual(broken, []);
  assert.ok(followed > 1000, `only ${followed} links`);
});

test('pages in Japanese say so, and others are in English', () => {
  for (const [path, { html }] of pages) {
    const language = /<html lang="(\w+)"/.exec(html)?.[1];
    assert.equal(language, path.startsWith('/ja/') ? 'ja' : 'en', path);
  }
});

test('on a phone no page scrolls sideways, images load, and nothing comes from another host', async () => {
  // Scripts make an index for the search on each page, and all pages have the same.
  await devtools('Network.enable', {});
  await devtools('Network.setBlockedURLs', { urls: ['*.js'] });
  await makeWide(PHONE);
  const wrong = [];
  for (const path of pages.keys()) {
    await reader.go(site + path);
    wrong.push(...await reader.evaluate(`[
      ...document.documentElement.scrollWidth > ${PHONE} ? ${WIDE} : [],
      ...[...document.images].filter((image) => image.naturalWidth === 0).map((image) => image.outerHTML),
      ...${FOREIGN},
      ...[...document.querySelectorAll('article :is(p, li)')].flatMap((block) => [...block.childNodes])
        .filter((node) => node.nodeType === Node.TEXT_NODE && node.data.includes('<!--')).map((node) => node.data),
    ].map((what) => location.pathname + ': ' + what)`));
  }
  await devtools('Network.setBlockedURLs', { urls: [] });
  await devtools('Emulation.clearDeviceMetricsOverride', {});
  await reader.complaints(); // That the scripts were blocked.
  assert.deepEqual(wrong, []);
});

test('pages, style sheets and scripts name nothing to load from another host', async () => {
  const sheets = new Set();
  const foreign = [];
  for (const [path, { loads }] of pages) {
    for (const load of loads) {
      const { origin, pathname } = new URL(load, site + path);
      if (origin !== site) foreign.push(`${path}: ${load}`);
      else if (pathname.endsWith('.css')) sheets.add(pathname);
    }
  }
  assert.deepEqual(foreign, []);
  assert.ok(sheets.size >= 3);
  for (const sheet of sheets) {
    const css = await (await fetch(site + sheet)).text();
    assert.doesNotMatch(css, /(@import|url\()\s*["']?(https?:)?\/\//, sheet);
  }
});

for (const path of COLOURFUL) {
  test(`${path} has enough contrast in both palettes, and fits on a phone`, async () => {
    await prefer('light');
    await reader.go(site + path);
    for (const preferred of ['light', 'dark']) {
      await prefer(preferred);
      const scheme = preferred === 'dark' ? 'slate' : 'default';
      await reader.until(`the palette ${scheme}`, async () => await palette() === scheme || undefined);
      const { looked, bad } = await reader.evaluate(`(${badContrasts})(${CONTRAST})`);
      assert.deepEqual(bad, [], `text with a contrast below ${CONTRAST}`);
      assert.ok(looked > 50, `looked at ${looked} texts only`);
      await keepPicture(path, preferred);
    }
    await makeWide(PHONE);
    try {
      // A script puts tables into boxes that scroll.
      await reader.until(`at most ${PHONE} pixels`, async () =>
        await reader.evaluate('document.documentElement.scrollWidth') <= PHONE || undefined,
      () => reader.evaluate(WIDE));
      await keepPicture(path, 'phone');
    } finally {
      await devtools('Emulation.clearDeviceMetricsOverride', {});
    }
    assert.deepEqual(await reader.evaluate(FOREIGN), []);
    assert.deepEqual(await reader.complaints(), []);
  });
}

test('a switch changes the palette', async () => {
  await prefer('dark');
  await reader.go(`${site}/`);
  assert.equal(await palette(), 'slate');
  await reader.click('form[data-md-component=palette] label:not([hidden])');
  await reader.until('the light palette', async () => await palette() === 'default' || undefined);
  // The next page remembers it.
  await reader.go(`${site}/store/`);
  assert.equal(await palette(), 'default');
});

test('the search finds words of English and Japanese', async () => {
  await reader.go(`${site}/`);
  await reader.click('.md-search__input');
  // The script has made its index.
  await reader.see(/Type to start searching/, '.md-search-result__meta');
  await search('purge', '/purge/');
  await search(JAPANESE_WORD, '/ja/');
});

test('the copy of a console block has only its commands', async () => {
  await reader.go(`${site}/tutorial/`);
  const blocks = await reader.evaluate(`[...document.querySelectorAll('.language-console code')].map((code) => {
    const shown = code.innerText;
    code.setAttribute('data-md-copying', ''); // As the button does it.
    const copied = code.innerText;
    code.removeAttribute('data-md-copying');
    return { shown, copied };
  })`);
  assert.ok(blocks.length > 3);
  for (const { shown, copied } of blocks) {
    const commands = shown.split('\n').filter((line) => /^[$>] /.test(line)).map((line) => line.slice(2));
    assert.equal(copied.trim(), commands.join('\n'));
  }
});

/** Fetches all pages of the site map. */
async function crawl() {
  const map = await (await fetch(`${site}/sitemap.xml`)).text();
  const paths = [...map.matchAll(/<loc>([^<]*)<\/loc>/g)].map(([, url]) => new URL(url).pathname);
  const found = new Map();
  for (const path of paths) {
    const response = await fetch(site + path);
    found.set(path, { status: response.status, ...parse(await response.text()) });
  }
  return found;
}

/** What a page links to, what it loads, and its anchors. In text `<` is escaped, so tags are tags. */
function parse(html) {
  const page = { html, links: [], loads: [], ids: new Set() };
  for (const [, name, attributes] of html.matchAll(/<(\w+)\s([^>]*)>/g)) {
    const values = Object.fromEntries([...attributes.matchAll(/([\w-]+)="([^"]*)"/g)]
      .map(([, key, value]) => [key, value.replaceAll('&amp;', '&')]));
    if (values.id) page.ids.add(values.id);
    if (values.src) page.loads.push(values.src);
    if (name === 'link' && ['stylesheet', 'icon', 'preload'].includes(values.rel)) page.loads.push(values.href);
    if (name === 'a' && values.href !== undefined) page.links.push(values.href);
  }
  page.links.push(...page.loads);
  return page;
}

/** Searches for a word, and waits for a result whose path begins like the one given. */
async function search(word, path) {
  await reader.evaluate(`document.querySelector('.md-search__input').value = ''`);
  await reader.type('.md-search__input', word);
  const results = () => reader.evaluate(`[...document.querySelectorAll('.md-search-result__link')]
    .map((link) => new URL(link.href).pathname)`);
  await reader.until(`${word} in a page below ${path}`, async () =>
    (await results()).some((result) => result.startsWith(path)) || undefined, results);
}

/** The palette that the page has: default or slate. */
function palette() {
  return reader.evaluate('document.body.dataset.mdColorScheme');
}

/** Sets the palette that the system of the reader prefers: light or dark. */
function prefer(value) {
  return devtools('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
}

function makeWide(pixels) {
  return devtools('Emulation.setDeviceMetricsOverride', { width: pixels, height: 2 * pixels, deviceScaleFactor: 1, mobile: false });
}

/** Sends a command of the Chrome DevTools Protocol. */
async function devtools(cmd, params) {
  const response = await fetch(`${reader.session}/goog/cdp/execute`, {
    method: 'POST', body: JSON.stringify({ cmd, params }),
  });
  assert.ok(response.ok, `${cmd}: ${response.status}`);
}

/** Keeps a picture of the front page. */
async function keepPicture(path, name) {
  const directory = process.env.SCREENSHOTS;
  if (!directory || path !== '/') return;
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, `${name}.png`), await reader.screenshot());
}
