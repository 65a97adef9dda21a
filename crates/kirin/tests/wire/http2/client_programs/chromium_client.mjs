// Talks HTTP/2 to the server at the URL on the command line, by a page in headless Chromium, and says
// OK, or what went wrong. The second argument is a file that the server has as /large.bin. /far of the
// server leads to a WebSocket that echoes messages.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Browser, startChromedriver } from "../../../../../../tests/browser/webdriver.mjs";

const [url, file] = process.argv.slice(2);

const digest = (algorithm, bytes) => createHash(algorithm).update(bytes).digest("hex");

// Runs a function in the page and returns what its promise gives.
const inPage = (browser, work, ...words) =>
    browser.evaluate(`(${work})(${words.map((word) => JSON.stringify(word)).join()})`);

async function main(browser) {
    await browser.go(`${url}/page.html`);
    const protocol = "performance.getEntriesByType('navigation')[0].nextHopProtocol";
    assert.equal(await browser.evaluate(protocol), "h2");

    const hash = await inPage(browser, async () => {
        const body = await (await fetch("/large.bin")).arrayBuffer();
        const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
        return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
    });
    assert.equal(hash, digest("sha256", readFileSync(file)));

    const uploaded = Buffer.from(Array.from({ length: 1_000_000 }, (_, at) => at % 251));
    const echo = await inPage(browser, async (length) => {
        const body = Uint8Array.from({ length }, (_, at) => at % 251);
        return (await fetch("/app/body", { method: "POST", body })).text();
    }, uploaded.length);
    assert.equal(echo, `${uploaded.length} ${digest("md5", uploaded)}`);

    // More requests at the same time than Chromium has connections for HTTP/1.
    const parts = await inPage(browser, async () => {
        const stream = async (number) => (await fetch(`/app/stream?${number}`)).text();
        return Promise.all(Array.from({ length: 50 }, (_, number) => stream(number)));
    });
    assert.deepEqual(new Set(parts), new Set(["part 1\npart 2\npart 3\n"]));

    // A request that the page gives up resets its stream. The connection goes on.
    const name = await inPage(browser, async () => {
        const control = new AbortController();
        const response = await fetch("/large.bin", { signal: control.signal });
        await response.body.getReader().read();
        control.abort();
        return response.text().catch((error) => error.name);
    });
    assert.match(name, /AbortError|TypeError/);
    assert.equal(await inPage(browser, async () => (await fetch("/hello.txt")).text()), "hello\n");

    const messages = await inPage(browser, (sizes) => new Promise((resolve, reject) => {
        const socket = new WebSocket(`wss://${location.host}/far`);
        const echoes = [];
        socket.binaryType = "arraybuffer";
        socket.onopen = () => sizes.forEach((size) => socket.send(new Uint8Array(size).fill(size)));
        socket.onmessage = ({ data }) => {
            const bytes = new Uint8Array(data);
            const size = sizes[echoes.length];
            echoes.push(bytes.length === size && bytes.every((byte) => byte === size % 256));
            if (echoes.length === sizes.length) socket.close(1000);
        };
        socket.onclose = ({ wasClean }) => resolve([...echoes, wasClean]);
        socket.onerror = () => reject(new Error("the WebSocket has failed"));
    }), [0, 1, 125, 126, 65_536, 300_000]);
    assert.deepEqual(messages, Array(7).fill(true));
    // The site has no favicon.ico, which Chromium wants to show.
    const complaints = await browser.complaints();
    assert.deepEqual(complaints.filter((text) => !text.includes("/favicon.ico")), []);
}

const driver = await startChromedriver();
let browser;
try {
    browser = await Browser.open(driver.url, { insecureCertificates: true });
    await main(browser);
    console.log("OK");
} catch (error) {
    console.log(error.stack);
    process.exitCode = 1;
} finally {
    await browser?.close();
    await driver.stop();
}
