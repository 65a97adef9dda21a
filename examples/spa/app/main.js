// Which view belongs to which address.
import { ApiError } from "app/api.js";
import { start } from "app/router.js";
import { list, newRecipe, problem, recipe } from "app/views.js";

const ROUTES = [
  [/^\/$/, list],
  [/^\/new$/, newRecipe],
  [/^\/recipes\/(\d+)$/, recipe],
];

start(async (path) => {
  try {
    for (const [pattern, view] of ROUTES) {
      const match = pattern.exec(path);
      if (match) return await view(...match.slice(1));
    }
    return problem("There is no such page.");
  } catch (error) {
    if (error instanceof ApiError) return problem(error.message);
    throw error;
  }
});
