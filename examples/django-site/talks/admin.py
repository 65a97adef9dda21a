"""The admin of talks and bookings."""
from django.contrib import admin

from .models import Booking, Talk


@admin.register(Talk)
class TalkAdmin(admin.ModelAdmin):
    list_display = ["title", "speaker", "starts", "free"]
    search_fields = ["title", "speaker"]
    date_hierarchy = "starts"


@admin.register(Booking)
class BookingAdmin(admin.ModelAdmin):
    list_display = ["name", "email", "talk", "made"]
    list_filter = ["talk"]
    search_fields = ["name", "email"]
