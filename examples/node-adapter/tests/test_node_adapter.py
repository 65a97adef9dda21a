"""The example in Node: requests, signals, and what its event loop can do beyond that."""
import os
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter_checks import AdapterChecks, KilledChecks  # noqa: E402


class NodeAdapter(AdapterChecks, unittest.TestCase):
    example, application, language, count = "node-adapter", "app.js", "Node", 1
    printing = "'use strict';", "'use strict';\nconsole.log('failed by the application');"

    def test_one_worker_serves_requests_that_wait_for_each_other(self):
        with ThreadPoolExecutor(2) as both:
            answers = list(both.map(self.site.get, ("/meet", "/meet")))
        self.assertEqual([b"met\n", b"met\n"], [body for _, _, body in answers])

    def test_an_error_in_a_callback_is_500_and_another_worker_follows(self):
        self.replace_application(
            "throw new Error('a bad day');",
            "return setImmediate(() => { throw new Error('a bad callback'); });")
        before = self.workers(1)
        self.assertEqual(500, self.site.get("/fail")[0])
        self.site.wait_for(
            lambda: "GET /fail: Error: a bad callback" in self.site.log(), "no line of the error")
        self.site.wait_for(lambda: not before & self.workers(1), "the worker stays")
        self.assertEqual(200, self.site.get("/")[0])


class KilledNode(KilledChecks, unittest.TestCase):
    example = "node-adapter"


if __name__ == "__main__":
    unittest.main()
