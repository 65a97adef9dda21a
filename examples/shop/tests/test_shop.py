"""The shop behind Kirin: what visitors see, and which part has answered."""
import os
import re
import sys
import unittest
from urllib.parse import urlencode

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../tests/gallery"))

from example import Example  # noqa: E402

TOKEN = re.compile(r'name="csrf_token" value="([0-9a-f]{32})"')
CUSTOMER = {"name": "Ann", "address": "1 Tea Street"}


class Visitor:
    """A browser with a cookie."""

    def __init__(self, shop):
        self._shop = shop
        self.cookie = None
        self.token = None

    def get(self, path):
        """Returns the status and the page."""
        return self._request("GET", path)

    def post(self, path, **fields):
        """Posts a form, with the token unless there is another. Returns the status and the page."""
        form = urlencode({"csrf_token": self.token or "", **fields})
        return self._request("POST", path, form)

    def take_basket(self):
        """Begins a session, and reads the token that pages from the store have for it."""
        self.get("/basket/new?product=2")
        _, page = self.get("/product/2")
        self.token = TOKEN.search(page).group(1)

    def _request(self, method, path, body=None):
        headers = {"Cookie": self.cookie} if self.cookie else {}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        status, fields, page = self._shop.request(method, path, body, headers)
        if "Set-Cookie" in fields:
            self.cookie = fields["Set-Cookie"].split(";")[0]
        return status, page.decode()


class ShopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shop = Example("shop")
        cls.shop.__enter__()
        # Leaving it checks that TERM ends it, and that the log has no error.
        cls.addClassCleanup(cls.shop.__exit__, None, None, None)

    def visitor(self):
        visitor = Visitor(self.shop)
        visitor.take_basket()
        return visitor

    def wait_for_line(self, line):
        self.shop.wait_for(
            lambda: re.search(line, self.shop.log()), f"the access log has no line {line}"
        )


class TestShop(ShopTest):
    def test_a_visitor_who_only_looks_gets_no_cookie_and_pages_from_the_store(self):
        visitor = Visitor(self.shop)
        first = visitor.get("/product/4")
        self.assertEqual(first[0], 200)
        self.assertIn("Linen &amp; cotton, 50 × 70 cm.", first[1])
        self.assertEqual(visitor.get("/product/4"), first)
        self.wait_for_line(r'"GET /product/4 HTTP/1\.1" 200 .* store ')
        self.assertIsNone(visitor.cookie)
        self.assertNotIn("csrf_token", first[1])
        status, headers, _ = self.shop.get("/shop.css")
        self.assertEqual((status, headers["X-Content-Type-Options"]), (200, "nosniff"))

    def test_a_page_from_the_store_has_the_basket_and_the_token_of_its_visitor(self):
        ann, bea = self.visitor(), self.visitor()
        self.assertNotEqual(ann.token, bea.token)
        for _ in range(2):
            self.assertEqual(ann.post("/basket/add", product=3)[0], 303)
        self.assertIn("Basket <b>2</b>", ann.get("/product/2")[1])
        self.assertNotIn("<b>2</b>", bea.get("/product/2")[1])
        self.wait_for_line(r'"GET /product/2 HTTP/1\.1" 200 .* store ')
        self.assertIn("28.00 €", ann.get("/basket")[1])
        self.assertEqual(ann.post("/basket", product=3, quantity=0)[0], 303)
        self.assertIn("The basket is empty", ann.get("/basket")[1])

    def test_after_an_order_nobody_sees_the_old_stock(self):
        looks = Visitor(self.shop)
        self.assertIn("2 in stock", looks.get("/product/5")[1])
        ann, bea = self.visitor(), self.visitor()
        for visitor in ann, bea:
            visitor.post("/basket", product=5, quantity=2)
        self.assertEqual(ann.post("/order", **CUSTOMER)[0], 303)
        self.assertIn("0 in stock", looks.get("/product/5")[1])
        self.assertRegex(looks.get("/")[1], "Kettle</a>.*sold out")
        self.assertRegex(ann.get("/thanks")[1], r"(?s)Ann.*158\.00 €.*[0-9a-f]{32}")
        status, page = bea.post("/order", **CUSTOMER)
        self.assertEqual(status, 409)
        self.assertIn("only 0 of “Kettle” left", page)
        self.assertEqual(bea.get("/thanks")[0], 302)

    def test_what_a_visitor_writes_is_text(self):
        visitor = self.visitor()
        visitor.post("/basket/add", product=2)
        name = '<script>alert(1)</script><!--# echo var="session.csrf_token" -->'
        status, page = visitor.post("/order", name=name, address="")
        self.assertEqual(status, 400)
        self.assertIn("Write your address", page)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;&lt;!--# echo", page)
        self.assertNotIn("<script>", page)

    def test_a_form_without_the_token_of_the_visitor_changes_nothing(self):
        ann, bea = self.visitor(), self.visitor()
        ann.post("/basket/add", product=2)
        for token in "", "0" * 32, bea.token:
            for path in "/basket", "/basket/add", "/order":
                fields = {"csrf_token": token, "product": 2, "quantity": 9, **CUSTOMER}
                status, _ = ann.post(path, **fields)
                self.assertEqual(status, 403, path)
        self.assertEqual(Visitor(self.shop).post("/basket/add", product=2)[0], 403)
        self.assertIn("Basket <b>1</b>", ann.get("/")[1])

    def test_bad_requests(self):
        visitor = self.visitor()
        for fields in (
            {"product": 2, "quantity": 10}, {"product": 2, "quantity": "x"}, {"product": 2},
            {"product": 99, "quantity": 1}, {"product": "2 OR 1=1", "quantity": 1},
        ):
            self.assertEqual(visitor.post("/basket", **fields)[0], 400, fields)
        self.assertEqual(visitor.get("/product/99")[0], 404)
        self.assertEqual(visitor.get("/../config.yml")[0], 400)
        for path in "/config.yml", "/lib/Shop.pm", "/data/shop.sqlite", "/views/index.tt":
            self.assertEqual(visitor.get(path)[0], 404, path)


class TestTooManyOrders(ShopTest):
    def test_a_script_cannot_order_again_and_again(self):
        visitor = Visitor(self.shop)
        statuses = {visitor.post("/order")[0] for _ in range(30)}
        self.assertEqual(statuses, {403, 429})


if __name__ == "__main__":
    unittest.main()
