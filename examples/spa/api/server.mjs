// The API: recipes as JSON, on a unix socket. Node without packages.
import { renameSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { Recipes } from "./recipes.mjs";

const DATA = fileURLToPath(new URL("../data/", import.meta.url));
const SOCKET = `${DATA}api.sock`;
// Kirin keeps these answers for a minute. Browsers ask each time.
const SHARED = { "Cache-Control": "public, max-age=0, s-maxage=60" };
const UNSHARED = { "Cache-Control": "no-store" };

const recipes = new Recipes(`${DATA}recipes.json`);

class Refusal extends Error {
  constructor(status, message, fields = {}) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}

function listOrAdd(request) {
  if (request.method === "GET" || request.method === "HEAD") return [200, recipes.list(), SHARED];
  if (request.method === "POST") return add(request);
  throw new Refusal(405, "Use GET or POST.", { Allow: "GET, HEAD, POST" });
}

function one(request, id) {
  if (request.method !== "GET" && request.method !== "HEAD") {
    throw new Refusal(405, "Use GET.", { Allow: "GET, HEAD" });
  }
  const recipe = recipes.get(Number(id));
  if (!recipe) throw new Refusal(404, "There is no such recipe.");
  return [200, recipe, SHARED];
}

async function add(request) {
  // Pages of other sites cannot send JSON here: a browser asks first whether it may, and this API
  // does not say yes. Browsers also say where a request comes from.
  const from = request.headers["sec-fetch-site"] ?? "same-origin";
  if (from !== "same-origin") throw new Refusal(403, "This request is from another site.");
  if (!/^application\/json *(;|$)/i.test(request.headers["content-type"] ?? "")) {
    throw new Refusal(415, "Send application/json.");
  }
  const { title, text } = (await body(request)) ?? {};
  if (!isText(title, 80) || !isText(text, 4000)) {
    throw new Refusal(422, "A recipe needs a title and a text.");
  }
  const recipe = recipes.add({ title: title.trim(), text: text.trim() });
  return [201, recipe, { ...UNSHARED, Location: `/api/recipes/${recipe.id}` }];
}

function isText(value, most) {
  return typeof value === "string" && value.trim() !== "" && value.length <= most;
}

async function body(request) {
  const pieces = [];
  // Kirin has the limit of a body: nobody else reaches this socket.
  for await (const piece of request) pieces.push(piece);
  try {
    return JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    throw new Refusal(400, "This is not JSON.");
  }
}

async function answer(request) {
  const path = request.url.split("?")[0];
  if (path === "/api/recipes") return listOrAdd(request);
  const match = /^\/api\/recipes\/([1-9]\d{0,8})$/.exec(path);
  if (match) return one(request, match[1]);
  throw new Refusal(404, "There is no such address.");
}

const server = createServer(async (request, response) => {
  let status, value, fields;
  try {
    [status, value, fields] = await answer(request);
  } catch (error) {
    if (!(error instanceof Refusal)) console.error(error);
    const refusal = error instanceof Refusal ? error : new Refusal(500, "Something went wrong.");
    [status, value] = [refusal.status, { error: refusal.message }];
    fields = { ...UNSHARED, ...refusal.fields };
  }
  response.writeHead(status, { "Content-Type": "application/json", ...fields });
  response.end(request.method === "HEAD" ? undefined : `${JSON.stringify(value)}\n`);
});

// The socket has its final name only when the server listens.
server.listen(`${SOCKET}.new`, () => renameSync(`${SOCKET}.new`, SOCKET));

for (const name of ["SIGINT", "SIGTERM"]) {
  process.on(name, () => {
    server.close();
    server.closeIdleConnections();
  });
}
