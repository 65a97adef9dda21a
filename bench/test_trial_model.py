"""Tests of the model of trials: `python3 -m unittest discover -s bench`."""

from __future__ import annotations

import math
import unittest
from dataclasses import replace

from trial_model import (
    DECISIVE, RATIOS, Trial, evidence, fewest, faults_table, median_requests, outcomes, part_given_up, shares_table, visits_table,
)  # fmt: skip


class Rule(unittest.TestCase):
    def test_so_many_failing_visitors_end_a_trial(self) -> None:
        # `crates/kirin-workers/src/trial/verdict.rs` has the same table.
        for share, old, expected in (
            (0.01, 0, 3), (0.01, 10, 4), (0.01, 100, 8), (0.05, 0, 3), (0.05, 1, 4), (0.05, 10, 7), (0.05, 100, 18),
            (0.2, 0, 6), (0.2, 10, 14), (0.5, 0, 12), (0.5, 10, 38),
        ):  # fmt: skip
            self.assertEqual(fewest(share, old), expected, f"share {share}, {old} of the old code")

    def test_evidence_is_one_in_expectation_under_equal_code(self) -> None:
        for share in (0.01, 0.05, 0.5):
            for new, old in ((0, 0), (3, 70)):
                expected = share * evidence(new + 1, old, share) + (1 - share) * evidence(new, old + 1, share)
                self.assertAlmostEqual(expected / evidence(new, old, share), 1.0)

    def test_the_evidence_is_a_mean_of_likelihood_ratios(self) -> None:
        share, new, old = 0.05, 2, 7
        likelihoods = []
        for ratio in RATIOS:
            one = ratio * share / (1 - share + ratio * share)
            likelihoods.append((one / share) ** new * ((1 - one) / (1 - share)) ** old)
        self.assertAlmostEqual(evidence(new, old, share), sum(likelihoods) / len(likelihoods))


class Simulation(unittest.TestCase):
    def test_equal_code_is_given_up_in_at_most_one_of_a_thousand_trials(self) -> None:
        for trial in (Trial(0.01, 0.0, rate=300), Trial(0.05, 0.0, share=0.5)):
            found = part_given_up(outcomes(trial, 2000))
            most = 1 / DECISIVE
            self.assertLess(found, most + 4 * math.sqrt(most / 2000), trial)

    def test_a_fault_in_one_of_twenty_requests_is_found(self) -> None:
        self.assertGreater(part_given_up(outcomes(Trial(0.0, 0.05), 1000)), 0.999)

    def test_more_faults_and_more_traffic_are_found_more_often(self) -> None:
        trial = Trial(0.001, 0.005)
        few = part_given_up(outcomes(trial, 1000))
        for better in (replace(trial, extra=0.02), replace(trial, rate=1000.0)):
            self.assertGreater(part_given_up(outcomes(better, 1000)), few, better)

    def test_code_that_never_fails_is_promoted(self) -> None:
        self.assertEqual(outcomes(Trial(0.0, 0.0), 3), [None] * 3)

    def test_the_median_is_that_of_the_trials_that_gave_up(self) -> None:
        self.assertEqual(median_requests([None, 10.0, 30.0, 20.0]), "20")
        self.assertEqual(median_requests([None]), "-")


class Tables(unittest.TestCase):
    def test_all_rows_of_a_table_have_the_same_columns(self) -> None:
        for table in (faults_table(1), shares_table(1), visits_table(1)):
            self.assertEqual(len({row.count("|") for row in table.splitlines()}), 1, table)


if __name__ == "__main__":
    unittest.main()
