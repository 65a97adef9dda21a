"""Runs Django's own tests for cache backends and session engines against Kirin's.

    python django_suite.py ADDRESS DIRECTORY-OF-DJANGO'S-TESTS

It is a program of its own, because the settings of Django hold for a process. The last line is JSON
with the number of tests and the skipped ones.
"""
import json
import os
import sys
import unittest

import programs

programs.software("django")

ADDRESS, TESTS = sys.argv[1:3]
sys.path.insert(0, TESTS)

import django  # noqa: E402
from django.conf import settings  # noqa: E402

BACKEND = "kirin.store.django.KirinCache"

settings.configure(
    SECRET_KEY="secret",
    USE_TZ=False,
    DATABASES={
        name: {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
        for name in ("default", "other")
    },
    INSTALLED_APPS=[
        "django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sites",
        "django.contrib.sessions", "django.contrib.messages", "cache", "sessions_tests",
    ],
    ROOT_URLCONF="urls",
    SITE_ID=1,
    MIGRATION_MODULES={"auth": None, "contenttypes": None, "sessions": None},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    CACHES={"default": {"BACKEND": BACKEND, "LOCATION": ADDRESS}},
    KIRIN_STORE=ADDRESS,
    SESSION_ENGINE="kirin.store.django_sessions",
    MIDDLEWARE=[],
)
django.setup()

from cache import tests as cache_tests  # noqa: E402
from django.test import SimpleTestCase, TestCase, override_settings  # noqa: E402
from django.test.runner import DiscoverRunner  # noqa: E402
from sessions_tests import tests as session_tests  # noqa: E402

from kirin.store.django_sessions import SessionStore  # noqa: E402


def skip(name, reason):
    """Skips a test of a base class, and makes sure that there is such a test."""

    def decorate(cls):
        if hasattr(cls, name):
            setattr(cls, name, unittest.skip(reason)(lambda self: None))
        return cls

    return decorate


def caches(serializer):
    options = {"serializer": serializer}
    # As for memcached: the store has no culling by number of items.
    setting = cache_tests.caches_setting_for_tests(
        BACKEND=BACKEND, LOCATION=ADDRESS, exclude={"cull", "zero_cull"}
    )
    for parameters in setting.values():
        parameters["OPTIONS"] = options
    return override_settings(CACHES=setting)


class KirinTests(cache_tests.BaseCacheTests):
    """The changes that the tests of Django's memcached backends have, too."""

    test_cull = test_zero_cull = None

    def tearDown(self):
        super().tearDown()
        # In Django's backends `clear` also removes the items of caches with another KEY_PREFIX.
        cache_tests.caches["prefix"].clear()

    def _perform_invalid_key_test(self, key, expected_warning, key_func=None):
        # Keys that a memcached does not take are errors and not warnings.
        with self.assertRaises(cache_tests.InvalidCacheKey):
            cache_tests.cache.set(key, "value")
        with self.assertRaises(cache_tests.InvalidCacheKey):
            cache_tests.cache.get_many([key])

    def test_invalid_with_version_key_length(self):
        # The base class expects a warning.
        with self.assertRaises(cache_tests.InvalidCacheKey):
            cache_tests.cache.set("a" * 248, "value")


@caches("pickle")
class PickleCacheTests(KirinTests, TestCase):
    pass


NEEDS_PICKLE = "JSON cannot store this value; the backend raises an exception"


@skip("test_data_types", "JSON has no tuples, dates, functions and classes")
@skip("test_cache_read_for_model_instance", NEEDS_PICKLE)
@skip("test_cache_write_for_model_instance_with_deferred", NEEDS_PICKLE)
@skip("test_cache_read_for_model_instance_with_deferred", NEEDS_PICKLE)
@skip("test_cache_write_unpicklable_object", NEEDS_PICKLE)
@skip("test_set_fail_on_pickleerror", "the error is TypeError")
@skip("test_add_fail_on_pickleerror", "the error is TypeError")
@caches("json")
class JsonCacheTests(KirinTests, TestCase):
    pass


@skip("test_session_key_valid_string_saved", "the id of a session is 40 hexadecimal digits")
class KirinSessionTests(session_tests.SessionTestsMixin, SimpleTestCase):
    backend = SessionStore


@skip("test_empty_session_saved", "it looks for the session in the database")
class KirinMiddlewareTests(session_tests.SessionMiddlewareTests):
    pass


def main():
    runner = DiscoverRunner(verbosity=0, interactive=False)
    suite = unittest.TestSuite()
    for case in (PickleCacheTests, JsonCacheTests, KirinSessionTests, KirinMiddlewareTests):
        for name in unittest.TestLoader().getTestCaseNames(case):
            if getattr(case, name) is not None:
                suite.addTest(case(name))
    runner.setup_test_environment()
    databases = runner.setup_databases()
    try:
        result = unittest.TextTestRunner(verbosity=1).run(suite)
    finally:
        runner.teardown_databases(databases)
        runner.teardown_test_environment()
    skipped = [[test.id(), reason] for test, reason in result.skipped]
    sys.stderr.flush()
    print(json.dumps({"run": result.testsRun, "skipped": skipped}), flush=True)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    os._exit(main())
