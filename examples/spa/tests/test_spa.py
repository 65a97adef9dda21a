"""The recipe box: its page for every address, modules that stay, and the API behind it."""
import json
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "gallery"))
from example import Example  # noqa: E402

# What a browser sends when somebody opens an address.
NAVIGATION = {"Accept": "text/html,*/*;q=0.8", "Sec_Fetch_Mode": "navigate"}
JSON = {"Content-Type": "application/json"}


class Site(unittest.TestCase):
    """The site, for the tests of the other classes."""

    @classmethod
    def setUpClass(cls):
        cls.site = Example("spa").__enter__()
        cls.addClassCleanup(cls.site.__exit__, None, None, None)

    def api(self, method, path, body=None, headers=JSON):
        """Returns the status of a request to the API, and the value of its answer."""
        data = None if body is None else json.dumps(body).encode()
        status, fields, answer = self.site.request(method, f"/api{path}", data, headers)
        self.assertEqual("application/json", fields["Content-Type"].split(";")[0])
        return status, json.loads(answer)


class Spa(Site):
    def test_every_address_of_the_application_is_its_page(self):
        _, _, page = self.site.get("/")
        self.assertIn(b'<main id="view">', page)
        status, fields, body = self.site.get("/recipes/2", **NAVIGATION)
        self.assertEqual((200, "no-cache", page), (status, fields["Cache-Control"], body))
        # A script, a picture and a typing error are no navigations.
        for path in "/recipes/2.json", "/none.png", "/recipes/2":
            self.assertEqual(404, self.site.get(path)[0], path)

    def test_modules_have_names_of_their_own_and_stay(self):
        page = self.site.get("/")[2].decode()
        imports = json.loads(re.search(r'"importmap">(.*?)</script>', page)[1])["imports"]
        views = imports["app/views.js"]
        for address in [*imports.values(), re.search(r'/assets/style-\w+\.css', page)[0]]:
            status, fields, _ = self.site.get(address)
            self.assertEqual(200, status, address)
            self.assertEqual("public, max-age=31536000, immutable", fields["Cache-Control"])

        # The next version: another name, and the old one is still there.
        with open(f"{self.site.directory}/app/views.js", "a", encoding="utf-8") as file:
            file.write("// another version\n")
        self.site.run("./prepare")
        self.site.wait_for(lambda: views not in self.site.get("/")[2].decode(), "the old page")
        self.assertEqual(200, self.site.get(views)[0])

        status, fields, body = self.site.get("/assets/views-0.js", **NAVIGATION)
        self.assertEqual((404, None), (status, fields["Cache-Control"]))
        self.assertNotIn(b"<main", body)

    def test_errors_of_the_api_stay_errors(self):
        for path in "/api/none", "/api/recipes/999", "/api", "/api/recipes/2/x":
            status, fields, body = self.site.get(path, **NAVIGATION)
            self.assertEqual(404, status, path)
            self.assertIn("error", json.loads(body))
        bad = self.site.request("POST", "/api/recipes", b"{", JSON)
        self.assertEqual((400, {"error": "This is not JSON."}), (bad[0], json.loads(bad[2])))
        self.assertEqual(422, self.api("POST", "/recipes", {"title": " "})[0])
        self.assertEqual(422, self.api("POST", "/recipes", "a text")[0])
        self.assertEqual(405, self.api("DELETE", "/recipes/1")[0])
        long = {"title": "Long", "text": "x" * 20_000}
        self.assertEqual((413, {"error": "That is too long."}), self.api("POST", "/recipes", long))

    def test_other_sites_cannot_write(self):
        before = self.api("GET", "/recipes")
        recipe = {"title": "Spam", "text": "Spam"}
        for headers in {"Content-Type": "text/plain"}, {**JSON, "Sec-Fetch-Site": "cross-site"}:
            self.assertIn(self.api("POST", "/recipes", recipe, headers)[0], (403, 415))
        self.assertEqual(before, self.api("GET", "/recipes"))

    def test_the_list_comes_from_memory_until_there_is_another_recipe(self):
        self.site.get("/api/recipes")
        self.assertIn("Kirin; hit", self.site.get("/api/recipes")[1]["Cache-Status"])
        recipe = {"title": "Tea <b>", "text": "Three minutes."}
        status, made = self.api("POST", "/recipes", recipe)
        number = made["id"]
        self.assertEqual((201, {"id": number, **recipe}), (status, made))
        self.assertEqual({"id": number, "title": "Tea <b>"}, self.api("GET", "/recipes")[1][-1])
        self.assertEqual(made, self.api("GET", f"/recipes/{number}")[1])
        line = r'"GET /api/recipes HTTP/1.1" 200 .* cache '
        self.site.wait_for(lambda: re.search(line, self.site.log()), "no line of a hit")

    def test_a_recipe_is_in_the_file_when_it_is_answered(self):
        self.assertEqual(201, self.api("POST", "/recipes", {"title": "A", "text": "B"})[0])
        with open(f"{self.site.directory}/data/recipes.json", encoding="utf-8") as file:
            self.assertEqual("A", json.load(file)[-1]["title"])


class ApiAway(Site):
    def test_an_api_that_is_away_is_an_error_in_json(self):
        os.unlink(f"{self.site.directory}/data/api.sock")
        status, answer = self.api("GET", "/recipes")
        self.assertEqual(502, status)
        self.assertIn("does not answer", answer["error"])
        self.assertEqual(200, self.site.get("/recipes/2", **NAVIGATION)[0])


if __name__ == "__main__":
    unittest.main()
