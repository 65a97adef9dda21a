"""Settings for a site in production, with Django 3.2 to 5.2."""
import os
from pathlib import Path

import django

BASE_DIR = Path(__file__).resolve().parent.parent
DATA = BASE_DIR / "data"

# `prepare` makes the key.
SECRET_KEY = (DATA / "secret_key").read_text(encoding="ascii").strip()
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "talks",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "evenings.urls"
WSGI_APPLICATION = "evenings.wsgi.application"
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA / "site.sqlite"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
]

# The cache and the sessions are in Kirin's store. Commands of manage.py do not run in Kirin. So
# they have no cache, and `runserver` has sessions in the database.
if "KIRIN_STORE" in os.environ:
    CACHES = {"default": {"BACKEND": "kirin.store.django.KirinCache"}}
    SESSION_ENGINE = "kirin.store.django_sessions"
else:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}

# Kirin serves the files in STATIC_ROOT. Their names have fingerprints.
STATIC_URL = "/static/"
STATIC_ROOT = DATA / "static"
MANIFEST = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
if django.VERSION < (4, 2):
    STATICFILES_STORAGE = MANIFEST
else:
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": MANIFEST},
    }

# Errors go to the log of Kirin. Django would only send them by e-mail.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SAMESITE = "Lax"
