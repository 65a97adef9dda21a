// The recipes: in memory, and in a file that is replaced at each change.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const FIRST = [
  { title: "Flat bread", text: "Flour, water, salt.\nRest for half an hour, then two minutes on each side." },
  { title: "Lentils with spinach", text: "Boil the lentils with an onion.\nAdd the spinach at the end." },
  { title: "Baked apples", text: "Nuts and raisins into the middle.\nForty minutes in the oven." },
];

export class Recipes {
  #file;
  #recipes;

  constructor(file) {
    this.#file = file;
    this.#recipes = existsSync(file)
      ? JSON.parse(readFileSync(file, "utf8"))
      : FIRST.map((recipe, index) => ({ id: index + 1, ...recipe }));
  }

  list() {
    return this.#recipes.map(({ id, title }) => ({ id, title }));
  }

  get(id) {
    return this.#recipes.find((recipe) => recipe.id === id);
  }

  add({ title, text }) {
    const recipe = { id: this.#recipes.length + 1, title, text };
    const recipes = [...this.#recipes, recipe];
    // A reader never finds half a file.
    writeFileSync(`${this.#file}.new`, JSON.stringify(recipes));
    renameSync(`${this.#file}.new`, this.#file);
    this.#recipes = recipes;
    return recipe;
  }
}
