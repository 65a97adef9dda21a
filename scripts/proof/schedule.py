"""Runs jobs side by side: most tests wait, so there are more of them at once than cores."""
import concurrent.futures
import threading

from . import job as jobs


def run_all(todo, slots, environment, wait_factor, seconds, on_result):
    """Runs the jobs and calls `on_result` with each result, from one thread at a time.

    The longest ones start first, by `seconds` of an earlier run: a long one that starts last would
    be waited for alone.
    """
    queue = sorted(todo, key=lambda job: -seconds.get(job.title, 1.0))
    lock = threading.Lock()

    def run(job):
        result = jobs.run(job, environment, wait_factor)
        with lock:
            on_result(result)

    with concurrent.futures.ThreadPoolExecutor(slots) as pool:
        waiting = [pool.submit(run, job) for job in queue]
        try:
            for done in waiting:
                done.result()
        except BaseException:
            # An interrupt, or a mistake of this program: nothing may be left running.
            pool.shutdown(wait=False, cancel_futures=True)
            jobs.stop_all()
            raise
