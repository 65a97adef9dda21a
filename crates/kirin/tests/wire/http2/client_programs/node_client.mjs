// Talks HTTP/2 to the server at the URL on the command line, by Node's module http2, and says OK, or
// what went wrong. The second argument is a file that the server has as /large.bin.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:http2";

const [url, file] = process.argv.slice(2);
const large = readFileSync(file);

const session = connect(url, { rejectUnauthorized: false });
session.on("error", fail);
session.on("goaway", (code) => fail(new Error(`GOAWAY ${code}`)));

function fail(error) {
    console.log(error.stack);
    process.exit(1);
}

// Sends a request, with trailers if there are any, and returns the body of the response.
function ask(method, path, body, trailers) {
    return new Promise((resolve, reject) => {
        const options = { endStream: body === undefined, waitForTrailers: trailers !== undefined };
        const stream = session.request({ ":method": method, ":path": path }, options);
        const pieces = [];
        let status;
        stream.on("response", (fields) => (status = fields[":status"]));
        stream.on("data", (piece) => pieces.push(piece));
        stream.on("wantTrailers", () => stream.sendTrailers(trailers));
        stream.on("error", reject);
        stream.on("end", () => {
            const body = Buffer.concat(pieces);
            if (status === 200) resolve(body);
            else reject(new Error(`${method} ${path}: ${status} ${body.subarray(0, 100)}`));
        });
        if (body !== undefined) stream.end(body);
    });
}

async function main() {
    assert.equal(String(await ask("GET", "/hello.txt")), "hello\n");
    const body = await ask("GET", "/large.bin");
    assert.ok(body.equals(large), `GET of a large file: ${body.length} bytes`);
    const sum = `${large.length} ${createHash("md5").update(large).digest("hex")}`;
    assert.equal(String(await ask("POST", "/app/body", large)), sum);
    const withTrailers = await ask("POST", "/app/body", Buffer.from("12345"), { "x-a": "trailer" });
    assert.match(String(withTrailers), /^5 /);
    const numbers = Array.from({ length: 100 }, (_, number) => number);
    await Promise.all(
        numbers.map(async (number) => {
            const [path, want] = number % 2 ? ["/hello.txt", "hello\n"] : ["/app/protocol", "HTTP/2"];
            assert.equal(String(await ask("GET", path)), want);
        }),
    );
    session.close();
    console.log("OK");
}

main().catch(fail);
