"""Talks, and the seats that visitors have booked."""
from django.db import models, transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone


class TalkQuerySet(models.QuerySet):
    """Talks by time."""

    def upcoming(self):
        """Returns the talks that have not started, the next one first."""
        return self.filter(starts__gt=timezone.now()).order_by("starts")


class Talk(models.Model):
    """A talk. `free` is the number of seats that nobody has booked."""

    title = models.CharField(max_length=120)
    speaker = models.CharField(max_length=80)
    starts = models.DateTimeField(db_index=True)
    free = models.PositiveIntegerField("free seats")
    text = models.TextField(blank=True)

    objects = TalkQuerySet.as_manager()

    def __str__(self):
        return self.title

    def get_absolute_url(self):
        return reverse("talk", args=[self.pk])

    def book(self, name, email):
        """Books a seat. Returns the booking, or None if there is no free seat."""
        with transaction.atomic():
            # The update is first and has the condition. So two visitors never get the same seat.
            taken = Talk.objects.filter(pk=self.pk, free__gt=0).update(free=F("free") - 1)
            return Booking.objects.create(talk=self, name=name, email=email) if taken else None


class Booking(models.Model):
    """A seat that somebody has booked."""

    talk = models.ForeignKey(Talk, on_delete=models.CASCADE, related_name="bookings")
    name = models.CharField(max_length=80)
    email = models.EmailField()
    made = models.DateTimeField(auto_now_add=True)

    def __str__(self):
        return f"{self.name}: {self.talk}"
