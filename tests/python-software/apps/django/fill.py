"""Makes the database, with an administrator and a book, and collects the static files."""
import os

import django
from django.core.management import call_command

os.environ["DJANGO_SETTINGS_MODULE"] = "shelf.settings"
django.setup()
call_command("migrate", verbosity=0)
call_command("collectstatic", interactive=False, verbosity=0)

from django.contrib.auth.models import User  # noqa: E402
from library.models import Book  # noqa: E402

User.objects.create_superuser("ann", "ann@site.example", "oak")
Book.objects.create(title="Kirin", pages=7)
