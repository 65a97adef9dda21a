// The views. Each returns an element. Text becomes text nodes, so no recipe can bring HTML with it.
import * as api from "app/api.js";
import { go } from "app/router.js";

/** Makes an element with properties and children. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export async function list() {
  const items = (await api.recipes()).map(({ id, title }) =>
    element("li", {}, element("a", { href: `/recipes/${id}` }, title)));
  return element("section", {},
    element("h1", {}, "Recipes"),
    element("ul", { className: "cards" }, ...items));
}

export async function recipe(id) {
  const { title, text } = await api.recipe(id);
  return element("article", {},
    element("h1", {}, title),
    element("p", { className: "text" }, text));
}

export function newRecipe() {
  const title = element("input", { id: "title", required: true, maxLength: 80 });
  const text = element("textarea", { id: "text", required: true, maxLength: 4000, rows: 8 });
  const message = element("p", { className: "problem" });
  message.setAttribute("role", "alert");
  const form = element("form", {},
    element("h1", {}, "New recipe"),
    message,
    element("label", { htmlFor: "title" }, "Title"), title,
    element("label", { htmlFor: "text" }, "What to do"), text,
    element("button", {}, "Save"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { id } = await api.addRecipe({ title: title.value, text: text.value });
      go(`/recipes/${id}`);
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error;
      message.textContent = error.message;
    }
  });
  return form;
}

export function problem(text) {
  return element("section", {},
    element("h1", {}, "Sorry"),
    element("p", { className: "problem" }, text),
    element("p", {}, element("a", { href: "/" }, "All recipes")));
}
