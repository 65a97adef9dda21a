// The requests to the API. Its errors have a message for people.

export class ApiError extends Error {}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new ApiError("The network does not answer. Please try again.");
  }
  const body = await response.json();
  if (!response.ok) throw new ApiError(body.error);
  return body;
}

export const recipes = () => request("/api/recipes");

export const recipe = (id) => request(`/api/recipes/${id}`);

export const addRecipe = (recipe) =>
  request("/api/recipes", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(recipe),
  });
