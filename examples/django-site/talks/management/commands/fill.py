"""Makes some talks, unless there are any."""
from datetime import timedelta

from django.core.management.base import BaseCommand
from django.utils import timezone

from talks.models import Talk

TALKS = [
    ("The night sky in winter", "Mina Okafor", 40, "Which stars you see without a telescope."),
    ("Bread & patience", "Jonas Lind", 12, "Sourdough in a small kitchen.\n\nWith tasting."),
    ("Repairing radios", "Adèle Roux", 20, "Bring one that is broken."),
    ("A walk along the old railway", "Tom Brandt", 1, "Three kilometres, in any weather."),
]


class Command(BaseCommand):
    help = __doc__

    def handle(self, **_):
        if Talk.objects.exists():
            return
        evening = timezone.now().replace(hour=19, minute=30, second=0, microsecond=0)
        for number, (title, speaker, free, text) in enumerate(TALKS, 1):
            Talk.objects.create(
                title=title, speaker=speaker, free=free, text=text,
                starts=evening + timedelta(weeks=number),
            )
