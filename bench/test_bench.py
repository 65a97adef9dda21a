"""Tests of the benchmark code: `python3 -m unittest discover -s bench`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import compare
import contest
import contest_chart
import contest_report
import grpc_echo
import http2_beside
import instructions
import measure
import page
import raw_clients
import report
from comparison import Budget, Comparison, Entrant, Result, Round, Row, Table
from comparisons import even_memory, hit_ratio, idle_memory_http2, lua_page, origin_idle, session_bar, ssi
from comparisons import http2_beside as beside
from comparisons.crowd_run import Counts, CrowdLoad
from contestants import CONTESTANTS, MEMO, on_port
from host import BENCH, BenchError, Cores, Host, Server, free_port
from fresh_pages_load import FreshPagesLoad, with_reads
from load import HttpLoad, Outcome
from peers import memcached, redis
from set_load import outcome_of
from standing import Round as Contest
from standing import Standing

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"


class CpuTime(unittest.TestCase):
    def test_a_child_counts_while_it_lives_and_after_it_has_ended(self) -> None:
        parent = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BURN + 'print(flush=True); input()'!r}],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline(); print("burnt", flush=True); input()
child.communicate(b"\\n"); print("ended", flush=True); input()
"""
        with subprocess.Popen(
            [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin and process.stdout
            for stage in ("burnt", "ended"):
                self.assertEqual(process.stdout.readline(), f"{stage}\n")
                self.assertGreaterEqual(measure.cpu_seconds([process.pid]), 0.19, stage)
                process.stdin.write("\n")
                process.stdin.flush()

    def test_a_thread_that_has_ended_still_counts(self) -> None:
        burn = f"import threading\nt = threading.Thread(target=lambda: exec({BURN!r}))\nt.start(); t.join()\n"
        with subprocess.Popen(
            [sys.executable, "-c", burn + "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout
            process.stdout.readline()
            self.assertGreaterEqual(measure.cpu_seconds([process.pid]), 0.19)
            process.communicate(b"\n")

    def test_work_in_user_space_is_told_from_the_kernels(self) -> None:
        user_before, system_before = measure.ticks([os.getpid()])
        sum(range(20_000_000))
        user, system = measure.ticks([os.getpid()])
        self.assertGreater(user - user_before, system - system_before)

    def test_a_process_that_is_gone_used_nothing(self) -> None:
        with subprocess.Popen(["true"]) as process:
            process.wait()
        self.assertEqual(measure.cpu_seconds([process.pid]), 0.0)


class Memory(unittest.TestCase):
    def test_what_is_written_to_is_counted(self) -> None:
        before = measure.anonymous_bytes([os.getpid()])
        block = bytearray(b"x" * 16_000_000)
        self.assertGreaterEqual(measure.anonymous_bytes([os.getpid()]) - before, len(block))


class Pages(unittest.TestCase):
    def test_a_page_has_exactly_the_size_asked_for(self) -> None:
        for size in (256, 1024, 100_000):
            self.assertEqual(len(page.html(size)), size)

    def test_pages_with_includes_become_the_filled_ones(self) -> None:
        for directive in (ssi.BY_KEY, ssi.BY_LOCATION):
            for title, one in ssi.PAGES.items():
                items = one.items(directive)
                text = items[one.path]
                for _ in range(2):  # Parts may have parts.
                    for path, part in items.items():
                        text = text.replace(directive.format(path).encode(), part)
                self.assertEqual(text, one.body, title)

    def test_a_members_page_differs_from_a_strangers_in_the_bar_alone(self) -> None:
        member, stranger = session_bar.FOR_MEMBER, session_bar.FOR_STRANGER
        self.assertIn(b"<strong>ann &amp; bob</strong>", member)
        self.assertEqual(member.partition(b"</header>")[2], stranger.partition(b"</header>")[2])


class Report(unittest.TestCase):
    load = HttpLoad("load", expect=b"")

    def row(self, name: str, cpu_us: float, failure: str = "") -> Row:
        entrant = Entrant(name, name, lambda host: Server(0, [], ""))
        return Row(entrant, 10, [Round(1000.0, cpu_us, 1.0, 2.0, 0.0, failure, user_us=cpu_us / 4)])

    def text(self, *rows: Row, budgets: tuple[Budget, ...] = ()) -> str:
        comparison = Comparison("name", "question", [row.entrant for row in rows], [self.load], budgets)
        return report.markdown(Result(comparison, [Table(self.load, list(rows))], {}), 1, 2.0, "- machine")

    def test_ratios_are_to_the_floor_and_to_the_cheapest_peer(self) -> None:
        text = self.text(
            self.row("kirin", 12.0), self.row("nginx", 20.0), self.row("h2o", 15.0), self.row("floor", 10.0)
        )
        self.assertIn("| kirin | 1,000 | 12.00 | 3.00 | 9.00 | 1.20 | 0.80 | 0.80 |", text)

    def test_a_row_with_errors_is_marked_and_compared_with_nothing(self) -> None:
        text = self.text(self.row("kirin", 12.0), self.row("nginx", 20.0), self.row("h2o", 1.0, "7 read"))
        self.assertIn("| h2o — **failed**: 7 read |", text)
        self.assertIn("| kirin | 1,000 | 12.00 | 3.00 | 9.00 | 0.60 | 0.60 |", text)

    def test_a_budget_says_whether_it_was_kept(self) -> None:
        rows = (self.row("kirin", 12.0), self.row("floor", 10.0))
        for limit, verdict in ((1.25, "kept"), (1.15, "**missed**")):
            self.assertIn(f"— {verdict}.", self.text(*rows, budgets=(Budget("b", "kirin", "floor", limit),)))

    def test_a_budget_of_user_time_leaves_the_kernel_out(self) -> None:
        kirin, other = self.row("kirin", 12.0), self.row("other", 10.0)
        kirin.rounds = [replace(kirin.rounds[0], user_us=2.0)]
        budget = Budget("b", "kirin", "other", 1.0, is_user=True)
        self.assertIn("0.800 of 1 × other — kept.", self.text(kirin, other, budgets=(budget,)))

    def test_a_budget_against_a_row_that_failed_says_nothing(self) -> None:
        rows = (self.row("kirin", 12.0), self.row("floor", 10.0, "1 connect"))
        self.assertNotIn("Budget", self.text(*rows, budgets=(Budget("b", "kirin", "floor", 9.0),)))


    def test_the_part_of_a_server_behind_has_a_column_of_its_name(self) -> None:
        kirin = self.row("kirin", 12.0)
        kirin.rounds = [replace(kirin.rounds[0], behind_us=4.5)]
        comparison = Comparison("name", "question", [kirin.entrant], [self.load], behind="Redis")
        text = report.markdown(Result(comparison, [Table(self.load, [kirin])], {}), 1, 2.0, "- machine")
        self.assertIn("| user | system | Redis's part |", text)
        self.assertIn("| kirin | 1,000 | 12.00 | 3.00 | 9.00 | 4.50 |", text)


class Origin(unittest.TestCase):
    def test_a_near_cache_that_answers_from_its_copies_has_failed(self) -> None:
        outcome = Outcome(1000, 2.0, 1.0, 2.0)
        self.assertEqual(with_reads(outcome, 990), outcome)
        self.assertIn("only 989 of 1,000 pages came from the origin", with_reads(outcome, 989).failure)

    def test_a_run_goes_on_behind_the_last_page_of_the_one_before(self) -> None:
        load, server = FreshPagesLoad("fresh", b"", begin="/fresh/", fresh=100), Server(80, [], "")
        self.assertIn("page, pages = wrk.host .. \":\" .. wrk.port, 0, 100", load.setup(server))
        load.went_on(server, 50)
        load.went_on(server, 30)
        self.assertIn("wrk.port, 80, 100", load.setup(server))
        load.went_on(server, 30)
        self.assertIn("wrk.port, 10, 100", load.setup(server))

    def test_redis_benchmark_says_how_long_its_commands_took(self) -> None:
        table = '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"\n'
        outcome = outcome_of(table + '"SET","50000.00","0.3","0.1","0.25","0.4","0.5","0.9"\n', 100_000)
        self.assertEqual(outcome, Outcome(100_000, 2.0, 250.0, 500.0))
        with self.assertRaisesRegex(BenchError, "nothing of SET"):
            outcome_of(table, 100_000)

    def test_a_command_is_an_array_of_bulk_strings(self) -> None:
        self.assertEqual(redis.encoded("GET", b"k", 7), b"*3\r\n$3\r\nGET\r\n$1\r\nk\r\n$1\r\n7\r\n")

    def test_an_idle_row_has_the_commands_of_its_time_alone(self) -> None:
        before = origin_idle.Seen(10.0, {"time": 5, "eval": 1}, 100, 200, 1.0, 2.0)
        after = origin_idle.Seen(14.0, {"time": 13, "hello": 8, "eval": 1}, 180, 600, 1.002, 2.004)
        self.assertEqual(
            origin_idle.row("kirin", before, after),
            ["kirin", "4.0", "2.0", "20", "100", "1000", "500", "8 HELLO, 8 TIME"],
        )


class HitRatio(unittest.TestCase):
    def played(self, misses: int, repeated_misses: int = 0) -> hit_ratio.Played:
        outcome = {
            "requests": 1000, "misses": misses, "later_requests": 500, "later_misses": 100,
            "requested_bytes": 9000, "missed_bytes": 3 * misses, "repeated_misses": repeated_misses,
        }  # fmt: skip
        return hit_ratio.Played(outcome, 7, 5 * 1024 * 1024)

    def test_the_fewest_misses_are_bold_and_a_tie_is_bold_twice(self) -> None:
        first, second = hit_ratio._rows(["trace"], {"kirin": self.played(300), "memcached": self.played(200)})
        self.assertEqual(first, ["trace", "kirin", "0.3000", "**0.2000**", "0.1000", "7", "5.0 MB"])
        self.assertEqual(second[2:5], ["**0.2000**", "**0.2000**", "**0.0667**"])

    def test_a_store_that_failed_is_no_winner(self) -> None:
        first, second = hit_ratio._rows(["trace"], {"kirin": "it ended", "memcached": self.played(200)})
        self.assertIn("**failed**: it ended", first[1])
        self.assertEqual(len(first), len(second))
        self.assertEqual(second[2], "**0.2000**")

    def test_many_objects_missed_twice_in_a_batch_are_said(self) -> None:
        (row,) = hit_ratio._rows(["trace"], {"kirin": self.played(300, repeated_misses=5)})
        self.assertEqual(row[1], "kirin (5 missed twice in a batch)")


class EvenMemory(unittest.TestCase):
    def test_who_takes_less_gets_the_difference_in_whole_megabytes(self) -> None:
        megabyte = even_memory.MEGABYTE
        resident = {"kirin": 20 * megabyte, "varnish": 26 * megabyte - 1}
        self.assertEqual(even_memory.leaner(resident), even_memory.More("kirin", 5))
        self.assertIsNone(even_memory.leaner({"kirin": megabyte + 1, "varnish": 2 * megabyte}))
        self.assertIsNone(even_memory.leaner({"varnish": megabyte}))


class Crowd(unittest.TestCase):
    def test_a_smaller_scale_has_fewer_connections_where_there_are_many_and_fewer_requests_where_not(self) -> None:
        crowd = CrowdLoad("crowd", connections=1000, requests=250, slow=500).of_scale(0.1)
        self.assertEqual((crowd.connections, crowd.requests, crowd.slow, crowd.asked), (100, 250, 50, 25_000))
        few = CrowdLoad("few", connections=5, requests=20_000, close=True, pause_ms=1).of_scale(0.1)
        self.assertEqual((few.connections, few.requests, few.close, few.pause_ms), (5, 2_000, True, 1))

    def test_failures_are_told_by_kind_and_latencies_only_if_there_are_any(self) -> None:
        some = Counts({"failed": 3.0, "unanswered": 2.0, "timeout": 1.0, "max_us": 1234567.0})
        self.assertEqual(some.failed, "3 (2 unanswered, 1 timeout)")
        self.assertEqual((some.milliseconds("max_us"), some.milliseconds("p50_us")), ("1,234.6", ""))
        self.assertEqual(Counts({"failed": 0.0}).failed, "0")


class Score(unittest.TestCase):
    def verdict(self, score: int, disqualified: str | None = None) -> dict[str, object]:
        return {
            "seconds": 20.0, "score": score, "disqualified": disqualified, "points": score, "faults": 0, "requests": 400,
            "kinds": [{"name": "memo", "worth": 5, "count": 400, "p50_ms": 0.5, "p99_ms": 2.0, "max_ms": 3.0}],
            "appeared": {"count": 3, "p50_ms": 50.0, "p99_ms": 60.0, "max_ms": 60.0},
            "reasons": {"memo: shown": 1} if disqualified else {},
        }  # fmt: skip

    def standing(self, place: int, *scores: int, disqualified: str | None = None) -> Standing:
        rounds = [Contest(self.verdict(score), 0.9, 0.1) for score in scores]
        if disqualified:
            rounds.append(Contest(self.verdict(0, disqualified), 0.9, 0.1))
        return Standing(CONTESTANTS[place], rounds, "settings")

    def test_the_score_is_the_median_and_the_ratio_is_to_the_first(self) -> None:
        first, second = self.standing(0, 100, 300, 200), self.standing(1, 500, 500, 400)
        self.assertEqual((first.score, second.score), (200, 500))
        text = contest_report.markdown([first, second], "- machine", 3, 20)
        self.assertIn("| Kirin, application untouched | 500 | 2.50 | 20 |", text)

    def test_one_disqualified_round_is_enough_and_the_reason_is_told(self) -> None:
        out = self.standing(2, 900, 900, disqualified="memo: shown (1 times)")
        self.assertEqual(out.score, 0)
        text = contest_report.markdown([self.standing(0, 100), out], "- machine", 3, 20)
        self.assertIn("**Kirin, pages pushed** is disqualified: memo: shown (1 times).", text)
        self.assertIn("| Kirin, pages pushed — **disqualified** | 0 |", text)

    def test_bars_are_as_long_as_their_scores(self) -> None:
        bars = contest_report.bars([self.standing(0, 100), self.standing(1, 400)])
        picture = ElementTree.fromstring(contest_chart.svg(bars, "points & ratios"))
        widths = [float(bar.get("width") or 0) for bar in picture.iter("{http://www.w3.org/2000/svg}rect")]
        self.assertAlmostEqual(widths[1] / widths[0], 4.0, places=1)
        self.assertIn("× 4.00", "".join(picture.itertext()))

    def test_words_of_a_title_are_those_that_no_escaping_changes(self) -> None:
        self.assertEqual(contest.plain_words("Word of the day: *kirin* & “more”"), "Word of the day")
        self.assertEqual(contest.plain_words("麒麟"), "")

    def test_the_examples_own_configuration_takes_part_at_another_port(self) -> None:
        config = on_port((MEMO / "kirin.toml").read_text(), 4711)
        self.assertIn('address = "127.0.0.1:4711"', config)
        self.assertNotIn("access_log", config)
        with self.assertRaisesRegex(BenchError, "0 addresses"):
            on_port("[store]\n", 4711)


class Comparisons(unittest.TestCase):
    def test_each_is_explained(self) -> None:
        lines = (BENCH / "README.md").read_text().splitlines()
        explained = {name.strip(" `") for line in lines if line.startswith("| `") for name in line.split("|")[1].split(",")}
        self.assertLessEqual(set(compare.NAMES), explained)

    def test_a_budget_names_rows_that_are_there(self) -> None:
        for name, one in compare.COMPARISONS.items():
            rows, titles = {entrant.row for entrant in one.entrants}, {"", *(load.title for load in one.loads)}
            for budget in one.budgets:
                self.assertLessEqual({budget.row, budget.against}, rows, name)
                self.assertIn(budget.load, titles, name)

    def test_no_two_rows_and_no_two_loads_of_a_comparison_have_one_name(self) -> None:
        for name, one in compare.COMPARISONS.items():
            for names in ([entrant.row for entrant in one.entrants], [load.title for load in one.loads]):
                self.assertEqual(sorted(set(names)), sorted(names), name)

    def test_each_load_has_a_row(self) -> None:
        for name, one in compare.COMPARISONS.items():
            for load in one.loads:
                self.assertTrue(any(entrant.takes_part(load) for entrant in one.entrants), f"{name}: {load.title}")

    def test_the_script_makes_the_page_that_is_expected(self) -> None:
        self.assertIn(b"<li><a href=\"/memo/1\">Walk &lt;1&gt; to the harbour</a></li>", lua_page.EXPECTED)


class RecordedChannel:
    """A way to a server that is not there. It keeps what is sent."""

    def __init__(self) -> None:
        self.sent = b""

    def sendall(self, data: bytes, /) -> None:
        self.sent += data

    def recv_into(self, room: memoryview, /) -> int:
        return 0


class Http2Clients(unittest.TestCase):
    def test_calls_at_once_are_answered_with_their_messages(self) -> None:
        client = raw_clients.Http2(
            grpc_echo.serve(), "/echo.Echo/Echo", instructions.CALL, streams=10, body=grpc_echo.MESSAGE
        )
        for _ in range(3):
            client()
        client.socket.close()
        self.assertEqual((client.stream, client.open), (61, set()))

    def test_an_echo_is_a_head_the_message_and_trailers_however_the_call_is_cut(self) -> None:
        call = raw_clients.frame(1, 4, 7, b"\x83") + raw_clients.frame(0, 1, 7, b"message")
        expected = (
            raw_clients.frame(1, 4, 7, grpc_echo.HEAD)
            + raw_clients.frame(0, 0, 7, b"message")
            + raw_clients.frame(1, 5, 7, grpc_echo.TRAILERS)
        )
        for cut in range(len(call)):
            calls = grpc_echo.Connection()
            self.assertEqual(calls.answer(call[:cut]) + calls.answer(call[cut:]), expected, cut)

    def test_known_fields_are_named_from_the_oldest_on(self) -> None:
        self.assertEqual(raw_clients.known_fields(3), bytes([0x80 | 64, 0x80 | 63, 0x80 | 62]))
        self.assertEqual(raw_clients.new_fields([("a", "b")]), b"\x40\x01a\x01b")

    def test_the_length_of_a_long_string_has_more_bytes(self) -> None:
        # RFC 7541, C.1: a prefix of seven bits.
        self.assertEqual(raw_clients.string(b"x" * 126)[:2], b"\x7ex")
        self.assertEqual(raw_clients.string(b"x" * 127)[:3], b"\x7f\x00x")
        self.assertEqual(raw_clients.string(b"x" * 1337)[:4], b"\x7f\xba\x09x")

    def test_a_small_answer_beside_a_download_is_timed_however_it_is_cut(self) -> None:
        answer = (
            raw_clients.frame(4, 0, 0, b"")
            + raw_clients.frame(1, 4, 1, b"\x88")
            + raw_clients.frame(0, 0, 1, b"l" * 60)
            + raw_clients.frame(1, 4, 3, b"\x88")
            + raw_clients.frame(0, 1, 3, b"s" * 5)
            + raw_clients.frame(0, 1, 1, b"l" * 40)
        )
        for cut in range(len(answer)):
            channel = RecordedChannel()
            client = http2_beside.Beside(channel, 80, ("/s", 5), ("/l", 100), False)
            client.begin()
            before = len(channel.sent)
            for part in (answer[:cut], answer[cut:]):
                client.read(memoryview(part))
            self.assertEqual((len(client.taken_us), client.downloaded), (1, 100), cut)
            acknowledged = raw_clients.frame(4, 1, 0, b"")
            asked = [raw_clients.frame(1, 5, 5, client.small_head), raw_clients.frame(1, 5, 7, client.large_head)]
            self.assertEqual(channel.sent[before:], acknowledged + b"".join(asked), cut)

    def test_a_download_that_is_too_short_is_an_error(self) -> None:
        client = http2_beside.Beside(RecordedChannel(), 80, ("/s", 5), ("/l", 100), False)
        client.begin()
        with self.assertRaisesRegex(BenchError, "the large file has 60 bytes and not 100"):
            client.read(memoryview(raw_clients.frame(1, 4, 1, b"\x88") + raw_clients.frame(0, 1, 1, b"l" * 60)))

    def beside_row(self, place: int, *p99s: float, failure: str = "") -> beside.Row:
        rounds = [beside.Taken(50.0, p99, p99 * 2, 100.0, 400.0, 0.8, 0.5, 0.01) for p99 in p99s]
        return beside.Row(beside.TLS_ROWS[place], Server(0, [], ""), rounds, failure)

    def test_a_p99_is_the_median_of_the_rounds_and_beside_h2os(self) -> None:
        rows = [self.beside_row(0, 100.0, 900.0, 150.0), self.beside_row(1, 200.0)]
        self.assertIn("| kirin files | 150 | 0.75 | 50 | 1,800 | 100 | 400 | 2,000 | 80% | 50% | 1% |", beside.table(rows))
        self.assertEqual(beside.budget(rows), ["Budget: p99 ≤ h2o's: 0.750 of 1 × h2o — kept."])
        failed = [rows[0], self.beside_row(1, 200.0, failure="it ended")]
        self.assertIn("| h2o — **failed**: it ended |", beside.table(failed))
        self.assertEqual(beside.budget(failed), [])

    def test_an_idle_connection_over_tls_may_have_more(self) -> None:
        limits = idle_memory_http2.LIMIT_BYTES
        self.assertIn("4,000 of 6,144 B a connection — kept.", idle_memory_http2.budget("kirin", 4000.0, limits[True]))
        self.assertIn("**missed**", idle_memory_http2.budget("kirin", 4000.0, limits[False]))
        self.assertEqual({entrant.row for entrant in idle_memory_http2.OVER_TLS}, {"kirin store, TLS", "h2o, TLS", "nginx return, TLS"})


class Statistics(unittest.TestCase):
    def test_stats_are_read_to_their_end_however_they_are_cut(self) -> None:
        reply = b"STAT version 1.6.18 debian\r\nSTAT curr_items 12\r\nEND\r\n"
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(100)
                    for byte in reply:
                        connection.sendall(bytes([byte]))

            server = threading.Thread(target=serve)
            server.start()
            said = memcached.statistics(f"127.0.0.1:{listener.getsockname()[1]}")
            server.join()
        self.assertEqual(said, {"version": "1.6.18 debian", "curr_items": "12"})


class Starting(unittest.TestCase):
    def host(self) -> Host:
        return Host(Cores("0", "0"), Path("kirin"), Path("tools"))

    def test_a_server_that_ends_at_start_shows_its_last_words(self) -> None:
        with self.host() as host, self.assertRaisesRegex(BenchError, "no such module"):
            host.start("broken", ["sh", "-c", "echo no such module; exit 3"], port=free_port())

    def test_a_program_that_is_missing_is_named(self) -> None:
        with self.host() as host, self.assertRaisesRegex(BenchError, "no-such-server"):
            host.start("missing", ["no-such-server"], port=free_port())

    def test_leaving_stops_workers_that_outlive_their_parent(self) -> None:
        port = free_port()
        serve = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(60)"
        with self.host() as host:
            root = host.start("orphaning", ["sh", "-c", f'{sys.executable} -c "{serve}" & wait'], port=port)
            workers = [process for process in measure.tree([root]) if process != root]
            self.assertTrue(workers)
        for worker in workers:
            self.assertTrue(ends(worker), f"{worker} still runs")


def ends(process: int) -> bool:
    """Waits for a process that has been killed. A zombie counts as ended."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if "(zombie)" in Path(f"/proc/{process}/status").read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


class Instructions(unittest.TestCase):
    DUMP = """\
events: Ir
fl=a.rs
fn=caller
10 2000
cfn=callee
calls=1000 5
+1 7000
-3 1000

fn=callee
5 7000
totals: 10000
"""

    def test_calls_do_not_count_for_the_caller(self) -> None:
        counted = instructions.Counted.parse(self.DUMP)
        self.assertEqual(counted.total, 10.0)
        self.assertEqual(counted.functions, {"caller": 3.0, "callee": 7.0})
        self.assertEqual(counted.callees, {"caller": 7.0})

    def test_a_part_has_what_its_functions_call(self) -> None:
        counted = instructions.Counted.parse(self.DUMP)
        self.assertEqual(counted.part(("caller", "other")), 10.0)
        self.assertEqual(counted.part(("callee*",)), 7.0)
        self.assertEqual(counted.part(("calle",)), 0.0)
        self.assertEqual(counted.part(("other",)), 0.0)

    def test_other_tables_and_comments_stay_when_counts_are_written(self) -> None:
        text = "# a\n[requests]\npage = 1\nold = 2\n\n# b\n[parts]\n\n# c\n[at_6fc4559]\npage = 3\n"
        written = instructions.written(text, {"requests": {"page": 4}, "parts": {"head": 5}})
        self.assertEqual(
            written, "# a\n[requests]\npage = 4\n\n# b\n[parts]\nhead = 5\n\n# c\n[at_6fc4559]\npage = 3\n"
        )

    def test_a_count_may_scatter_and_grow_a_little(self) -> None:
        case, counts = instructions.CASES[0], {"page": 1000, "head": 100}
        self.assertEqual(instructions.above(case, {"page": 1010, "head": 101}, counts, 1.0), [])
        self.assertEqual(instructions.above(case, {"page": 1011, "head": 102}, counts, 1.0), ["page", "head"])
        # Other processes and other machines scatter by more where a case or a part says so.
        self.assertEqual(instructions.above(case, {"page": 1000, "host": 457}, {"host": 417}, 0.0), [])
        self.assertEqual(instructions.above(case, {"page": 1000, "host": 458}, {"host": 417}, 0.0), ["host"])

    def test_a_hit_of_a_copy_may_take_two_per_cent_more(self) -> None:
        cases = [case for case in instructions.CASES if case.name in ("page", "page_copy")]
        # Two counts of this case may also differ by 100.
        self.assertEqual(instructions.above_original({"page": 1000, "page_copy": 1120}, cases), [])
        self.assertEqual(instructions.above_original({"page": 1000, "page_copy": 1121}, cases), ["page_copy"])
        self.assertEqual(instructions.above_original({"page_copy": 1021}, cases), [], "nothing to compare with")

    def test_requests_in_one_write_are_as_many_as_one_after_the_other(self) -> None:
        def counted(_kirin: instructions.Kirin, work: Callable[[], None]) -> tuple[instructions.Counted, float]:
            work()
            return instructions.Counted(10.0, {}, {}), 1.0

        kirin, asked = instructions.Kirin(0, 0, Path(), Path()), []
        with (
            patch.object(instructions.Kirin, "_counted", counted),
            patch.object(instructions.Kirin, "_wait_until_idle", lambda _kirin: None),
            patch.object(instructions, "PACE_SECONDS", 0.0),
        ):
            for at_once in (1, 10):
                asked.clear()
                kirin._round(lambda: asked.append(1), at_once, 0.0)
                self.assertEqual(len(asked) * at_once, instructions.REQUESTS)

    def test_functions_are_sorted_by_their_change(self) -> None:
        now = instructions.Counted(10.0, {"a": 5.0, "b": 5.0}, {})
        before = instructions.Counted(12.0, {"a": 4.0, "c": 8.0}, {})
        names = [line.split()[-1] for line in instructions.functions(now, before, 2)]
        self.assertEqual(names, ["c", "b"])


if __name__ == "__main__":
    unittest.main()
