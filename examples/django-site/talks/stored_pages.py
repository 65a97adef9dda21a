"""Keeps what the store has of the talks correct.

The store has the page `/`, and the list of the next talks as a fragment in Django's cache. When a
talk or a booking changes, both are removed. The next visitor gets them as they are then.
"""
from django.core.cache import cache
from django.core.cache.utils import make_template_fragment_key
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from .models import Booking, Talk

STORE_FIELD = "Kirin-Store"
TAG = "talks"
FRAGMENT = "next_talks"


def for_all_visitors(path):
    """Returns the value of the field that asks Kirin to store a response under this path.

    A talk leaves the list when it starts. A minute is early enough for that.
    """
    return f'ttl=60, key="{path}", tags="{TAG}"'


@receiver([post_save, post_delete], sender=Talk)
@receiver([post_save, post_delete], sender=Booking)
def remove(**_):
    """Removes them after the commit. A page that is made before it would have the old talks."""
    transaction.on_commit(remove_now)


def remove_now():
    """Removes the fragment and the pages."""
    cache.delete(make_template_fragment_key(FRAGMENT))
    # The commands of manage.py have no store.
    if hasattr(cache, "purge"):
        cache.purge(tags=[TAG])
