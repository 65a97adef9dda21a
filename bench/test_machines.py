"""Tests of the memo example on three machines: what counts as a failure, and the files of a machine."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

import machines_report
from contestants import MEMO, Site
from host import BenchError, Cores, Host, Server
from incidents import INCIDENTS
from machines import made, replaced
from machines_report import Course, Pace
from visits import ENDED, Findings, InProgress

CUT = f"page after sign-out: {ENDED}"
LOST = "sign-out: status 502 and not 303"
BREACH = "page after sign-out: guest00001 has signed out and is still named"


def findings(reasons: dict[str, int], breaches: int = 0, disqualified: str | None = None) -> Findings:
    verdict: dict[str, Any] = {
        "seconds": 2.0, "requests": 1000, "faults": sum(reasons.values()), "breaches": breaches,
        "reasons": reasons, "disqualified": disqualified,
    }  # fmt: skip
    return Findings([verdict, {**verdict, "reasons": {}, "faults": 0, "breaches": 0}])


class Complaints(unittest.TestCase):
    def test_nothing_may_be_wrong_if_no_machine_was_killed(self) -> None:
        self.assertEqual(findings({}).complaint(InProgress()), "")
        for reason in (CUT, LOST, BREACH, "memo: status 502 and not 200", f"sign-out: {ENDED}"):
            self.assertNotEqual(findings({reason: 1}).complaint(InProgress()), "", reason)

    def test_what_a_killed_machine_had_begun_may_be_lost_but_no_more(self) -> None:
        found = findings({CUT: 1, LOST: 2, f"sign-in: {ENDED}": 1})
        self.assertEqual((found.cut, found.lost_posts, found.failures), (1, 3, {}))
        self.assertEqual(found.complaint(InProgress(posts=3, responses=1)), "")
        self.assertIn("POST", found.complaint(InProgress(posts=2, responses=1)))
        self.assertIn("cut", found.complaint(InProgress(posts=3)))

    def test_a_page_that_fails_or_is_out_of_date_is_never_allowed(self) -> None:
        for reason in ("memo: status 502 and not 200", "sign-out: status 504 and not 303", BREACH):
            self.assertIn(reason, findings({reason: 1}).complaint(InProgress(9, 9)))

    def test_a_visit_that_checked_nothing_is_a_complaint(self) -> None:
        said = "nobody got as far as: sign-in"
        self.assertEqual(findings({}, disqualified=said).complaint(InProgress(9, 9)), said)


class Files(unittest.TestCase):
    def test_machines_share_the_origin_and_the_database_and_nothing_else(self) -> None:
        with Host(Cores("0", "0"), Path("kirin"), Path()) as host:
            for calm in (False, True):
                with tempfile.TemporaryDirectory() as name:
                    seeded = Site(Path(name) / "site")
                    Site(MEMO).copy(seeded.directory)
                    first, second = (made(host, 2 * calm + number, seeded, Server(6379, [], ""), calm) for number in (1, 2))
                for machine in (first, second):
                    text = machine.config.read_text()
                    self.assertIn('origin = "redis://127.0.0.1:6379"', text)
                    self.assertIn(f'MEMO_DATABASE = "{seeded.database}"', text)
                    self.assertEqual("time_limit" in text, calm)
                    self.assertIn('"unix:data/store.sock"', text)
                self.assertNotEqual(first.site.directory, second.site.directory)
                self.assertNotEqual(first.port, second.port)

    def test_a_setting_that_the_example_no_longer_has_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "0 times, and not 1"):
            replaced("a", "b", "c")


class Report(unittest.TestCase):
    def test_the_page_has_a_row_for_each_incident_and_its_complaint(self) -> None:
        courses = [
            Course("kirin", one.title, findings({BREACH: 2, LOST: 1}, breaches=2), "bad", "about") for one in INCIDENTS.values()
        ]
        pace = Pace("three")
        pace.add(findings({}), 1.0, 0.1, "about")
        text = machines_report.markdown(courses, [pace], "- machine")
        for incident in INCIDENTS.values():
            self.assertIn(f"| {incident.title} | kirin | 2,000 | 2 | 0 | 1 | 0 |", text)
        self.assertIn("| three | 500 | 500 | 2,000 | 0 | 100% | 10% |", text)
        self.assertIn("bad", text)


if __name__ == "__main__":
    unittest.main()
