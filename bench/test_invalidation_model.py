"""Tests of the model of invalidations: `python3 -m unittest discover -s bench`."""

from __future__ import annotations

import io
import math
import unittest
from dataclasses import replace
from unittest.mock import Mock

from host import BenchError
from invalidation_model import (
    all_loads, formula_table, keys_table, limit_table,
    most_writes, spread_table, traffic_table, ttl_table,
)  # fmt: skip
from near_copies import Copies, Costs, Traffic, Workload, bytes_out, expected, fleet, invalidation, simulate, zipf
from tracking_meter import Compared, Connection, FLEETS

SMALL = Workload(keys=300, reads=500.0, writes=50.0)
WARM_UP, SECONDS = 50.0, 150.0

COSTS = Costs(
    tracked_us=dict.fromkeys(FLEETS, 5.0), tracked_together_us=dict.fromkeys(FLEETS, 1.0),
    broadcast_us=dict.fromkeys(FLEETS, 5.0), broadcast_together_us=dict.fromkeys(FLEETS, 0.5), set_us=10.0, set_together_us=2.0,
    write_us=40.0, miss_us=20.0, miss_together_us=10.0, proof_us=dict.fromkeys(FLEETS, 100.0),
    purge_us=dict.fromkeys(FLEETS, 30.0), key_bytes=100.0, entry_bytes=50.0,
)  # fmt: skip


class Simulation(unittest.TestCase):
    def assert_near(self, one: float, other: float, share: float, what: str) -> None:
        self.assertLess(abs(one - other), share * other, f"{what}: {one} and {other}")

    def test_the_simulation_agrees_with_the_formulas(self) -> None:
        for name, load in {
            "alike": SMALL,
            "uniform": replace(SMALL, write_exponent=0.0),
            "zipf 0.8": replace(SMALL, read_exponent=0.8),
            "room for a tenth": replace(SMALL, capacity=30),
            "room for a tenth, uniform": replace(SMALL, capacity=30, write_exponent=0.0),
            "ttl": replace(SMALL, ttl=1.0),
            "ttl without writes": replace(SMALL, ttl=0.5, writes=0.0),
        }.items():
            with self.subTest(name):
                one, formula = simulate(load, 2, WARM_UP, SECONDS), expected(load)
                self.assert_near(one.hit_ratio, formula.hit_ratio, 0.02, "hit ratio")
                self.assert_near(one.misses, formula.misses, 0.03, "misses")
                self.assertAlmostEqual(one.tracked_messages, formula.tracked_messages, delta=0.02 * formula.tracked_messages)
                self.assert_near(one.entries, formula.entries, 0.06, "entries")

    def test_a_machine_holds_a_key_between_two_writes_as_an_exponential_says(self) -> None:
        # Writes of key k each T seconds: 1 - exp(-r p_k T) of the machines are told.
        machines, interval, key, shares = 4000, 2.0, 5, zipf(20, 1.0)
        load = Workload(keys=20, reads=3.0, writes=0.0)
        log: list[tuple[int, int]] = []
        simulate(load, machines, 0.0, interval, log=log)
        copies = Copies(machines, load.keys, math.inf)
        for index, one in log:
            copies.read(index, one, 0.0)
        told = len(copies.write(key))
        share = 1 - math.exp(-load.reads * shares[key] * interval)
        self.assertLess(abs(told / machines - share), 4 * math.sqrt(share * (1 - share) / machines), f"{told} told")

    def test_a_few_machines_stand_for_many(self) -> None:
        load = replace(SMALL, reads=50.0, capacity=60)
        few, many = simulate(load, 4, 60.0, 200.0, seed=1), simulate(load, 40, 60.0, 60.0, seed=2)
        self.assert_near(few.hit_ratio, many.hit_ratio, 0.02, "hit ratio")
        self.assert_near(few.tracked_messages, many.tracked_messages, 0.05, "messages")
        self.assert_near(few.entries, many.entries, 0.05, "entries")

    def test_the_same_seed_gives_the_same_figures(self) -> None:
        load = replace(SMALL, capacity=30)
        self.assertEqual(simulate(load, 2, 1.0, 5.0, seed=7), simulate(load, 2, 1.0, 5.0, seed=7))
        self.assertNotEqual(simulate(load, 2, 1.0, 5.0, seed=7), simulate(load, 2, 1.0, 5.0, seed=8))

    def test_shares_of_zipf(self) -> None:
        self.assertEqual(zipf(4, 0.0), [0.25] * 4)
        shares = zipf(1000, 1.0)
        self.assertAlmostEqual(sum(shares), 1.0)
        self.assertAlmostEqual(shares[0] / shares[9], 10.0)

    def test_the_formulas_refuse_a_capacity_with_a_ttl(self) -> None:
        with self.assertRaisesRegex(ValueError, "not both"):
            expected(replace(SMALL, capacity=10, ttl=1.0))


class OneByOne(unittest.TestCase):
    def test_a_write_tells_each_reader_once(self) -> None:
        copies = Copies(3, 10, math.inf)
        self.assertEqual([copies.read(index, 7, 0.0) for index in (0, 0, 2)], [False, True, False])
        self.assertEqual(copies.entries(), 2)
        self.assertEqual(copies.write(7), {0, 2})
        self.assertEqual((copies.write(7), copies.entries()), (set(), 0))
        self.assertFalse(copies.read(0, 7, 0.0), "the copy is dropped")

    def test_the_copy_that_was_not_used_for_longest_is_evicted_and_stays_tracked(self) -> None:
        copies = Copies(1, 2, math.inf)
        for key in (1, 2, 1, 3):
            copies.read(0, key, 0.0)
        self.assertEqual(list(copies.held[0]), [1, 3])
        self.assertEqual(copies.entries(), 3)
        self.assertEqual(copies.write(2), {0}, "the server does not know of the eviction")

    def test_a_copy_ends_after_its_ttl(self) -> None:
        copies = Copies(1, 2, 10.0)
        self.assertEqual([copies.read(0, 1, at) for at in (0.0, 9.0, 10.0, 19.0, 20.0)], [False, True, False, True, False])


class Fleets(unittest.TestCase):
    def test_one_machine_is_told_of_its_own_writes_only(self) -> None:
        one = expected(SMALL)
        self.assertEqual(fleet(SMALL, 1, one).tracked_messages, SMALL.writes)

    def test_tracking_sends_no_more_than_broadcasting(self) -> None:
        for machines in FLEETS:
            for name, load in all_loads().items():
                traffic = fleet(load, machines, expected(load))
                self.assertLessEqual(traffic.tracked_messages, traffic.broadcast_messages, f"{name}, {machines}")
                self.assertLessEqual(traffic.tracked_keys, min(load.keys, traffic.entries + 1e-6), f"{name}, {machines}")

    def test_without_evictions_each_miss_is_paid_by_a_message(self) -> None:
        one = expected(SMALL)
        self.assertAlmostEqual(one.misses, one.tracked_messages)
        small = expected(replace(SMALL, capacity=30))
        self.assertGreater(small.misses, small.tracked_messages)
        self.assertAlmostEqual(small.tracked_messages, one.tracked_messages)

    def test_the_work_is_that_of_writes_reads_and_messages_of_others(self) -> None:
        load = replace(SMALL, writes=10.0)
        traffic = fleet(load, 10, Traffic(0.9, misses=50.0, tracked_messages=5.0, entries=100.0))
        self.assertEqual((traffic.misses, traffic.tracked_messages, traffic.broadcast_messages), (500.0, 55.0, 100.0))
        self.assertEqual(COSTS.work_us(load, 10, traffic, is_together=False), 10 * 40 + 45 * 5 + 500 * 20)
        self.assertEqual(COSTS.work_us(load, 10, traffic, is_together=False, is_broadcast=True), 10 * 40 + 90 * 5 + 500 * 20)
        self.assertLess(COSTS.work_us(load, 10, traffic, is_together=True), COSTS.work_us(load, 10, traffic, is_together=False))
        self.assertEqual(COSTS.core(load, 10, traffic), "0.6% to 1.2%")

    def test_a_key_of_the_table_costs_more_than_a_further_machine(self) -> None:
        traffic = replace(fleet(SMALL, 10, expected(SMALL)), entries=100.0, tracked_keys=20.0)
        self.assertEqual(COSTS.table_bytes(traffic), 20 * 100 + 80 * 50)

    def test_bytes_are_those_of_messages_and_items(self) -> None:
        traffic = fleet(SMALL, 1, Traffic(1.0, misses=0.0, tracked_messages=1.0, entries=1.0))
        self.assertEqual(bytes_out(traffic, 2.0), 2 * len(invalidation(b"x" * 22)))
        self.assertGreater(bytes_out(replace(traffic, misses=3.0), 0.0), 3 * 1024)

    def test_most_writes_are_those_that_fill_the_budget(self) -> None:
        self.assertAlmostEqual(most_writes(700.0, lambda writes: 7 * writes), 100.0, delta=0.01)
        self.assertAlmostEqual(most_writes(-1.0, lambda writes: 7 * writes), 0.0, delta=0.01)


class Tables(unittest.TestCase):
    def test_each_workload_has_a_row_for_each_number_of_machines(self) -> None:
        simulated = {name: expected(load) for name, load in all_loads().items()}
        rows = traffic_table(COSTS, simulated).splitlines()
        self.assertEqual(len(rows), 2 + len(all_loads()) * len(FLEETS))
        self.assertEqual(len(formula_table(simulated).splitlines()), 2 + len(all_loads()))
        for table in (rows, *(text.splitlines() for text in (spread_table(COSTS), keys_table(COSTS), limit_table(COSTS), ttl_table()))):
            self.assertEqual(len({row.count("|") for row in table}), 1, table[0])

    def test_a_difference_is_that_of_the_real_run(self) -> None:
        self.assertEqual(Compared("messages", 200.0, 190.0).row(), ["messages", "200", "190", "-5.0%"])


class Replies(unittest.TestCase):
    def connection(self, *parts: bytes) -> Connection:
        connection = Connection.__new__(Connection)
        connection.socket, connection.input, connection.told = Mock(), io.BufferedReader(io.BytesIO(b"".join(parts))), 0
        return connection

    def test_messages_between_replies_are_counted_by_their_keys(self) -> None:
        two = b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
        connection = self.connection(b"$5\r\nin\r\nx\r\n", invalidation(b"kirin:i:a"), b":-1\r\n", two, b"%1\r\n+a\r\n:1\r\n_\r\n")
        self.assertEqual(connection.replies(2), [b"in\r\nx", b"-1"])
        self.assertEqual(connection.told, 1)
        self.assertEqual(connection.replies(2), [[b"a", b"1"], None])
        self.assertEqual(connection.told, 3)

    def test_a_flush_names_no_key(self) -> None:
        connection = self.connection(b">2\r\n$10\r\ninvalidate\r\n_\r\n", b"+PONG\r\n")
        self.assertEqual((connection.replies(1), connection.told), ([b"PONG"], 0))

    def test_an_error_and_an_end_are_errors(self) -> None:
        for received in (b"-ERR no\r\n", b""):
            with self.assertRaisesRegex(BenchError, "redis-server"):
                self.connection(received).replies(1)

    def test_a_reply_that_nobody_asked_for_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "nobody has asked"):
            self.connection(b"+OK\r\n").wait_until_told(1)


if __name__ == "__main__":
    unittest.main()
