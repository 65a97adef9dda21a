"""The application of the talks."""
from django.apps import AppConfig


class TalksConfig(AppConfig):
    """Connects the signals that keep stored pages correct."""

    name = "talks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self):
        from . import stored_pages  # noqa: F401
