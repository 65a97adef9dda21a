// The page of the chat. It connects when the visitor enters, and again after a lost connection.

const element = (id) => document.getElementById(id);
const LONGEST_PAUSE_MS = 10_000;

let socket;
let name;
let is_welcome = false;
let pause = 500;

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/socket`);
  socket.addEventListener("open", () => socket.send(JSON.stringify({ name })));
  socket.addEventListener("message", (event) => receive(JSON.parse(event.data)));
  socket.addEventListener("close", () => {
    is_welcome = false;
    if (name === undefined) return;
    show_problem("The connection is lost. Connecting again …");
    // Each visitor waits a different time, so that they do not all come back at once.
    setTimeout(connect, pause * (0.5 + Math.random()));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  });
}

function receive({ welcome, messages, present, error }) {
  show_problem(error);
  if (welcome !== undefined) {
    is_welcome = true;
    pause = 500;
    element("messages").replaceChildren();
    show_form("say");
  }
  messages?.forEach(show_message);
  if (present) element("present").textContent = `Here: ${present.join(", ")}`;
  if (error && !is_welcome) refused();
}

// The name was refused. A new visitor chooses another one. After a lost connection the chat may not
// know yet that the old one is gone. Then the page tries again.
function refused() {
  if (element("say").hidden) name = undefined;
  socket.close();
}

// What visitors write becomes text, never HTML.
function show_message({ name, text, time }) {
  const who = document.createElement("b");
  const what = document.createElement("span");
  const when = document.createElement("time");
  who.textContent = name;
  what.textContent = text;
  when.textContent = new Date(time * 1000).toLocaleTimeString([], { timeStyle: "short" });
  const line = document.createElement("li");
  line.append(who, " ", what, " ", when);
  element("messages").append(line);
  line.scrollIntoView({ block: "end" });
}

function show_problem(text) {
  element("problem").textContent = text ?? "";
  element("problem").hidden = !text;
}

function show_form(shown) {
  for (const id of ["enter", "say"]) element(id).hidden = id !== shown;
  element(shown === "say" ? "text" : "name").focus();
}

element("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  name = element("name").value;
  connect();
});

element("say").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!is_welcome) return;
  socket.send(JSON.stringify({ text: element("text").value }));
  element("text").value = "";
});
