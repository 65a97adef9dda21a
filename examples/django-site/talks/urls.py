"""The pages for visitors."""
from django.urls import path

from . import views

urlpatterns = [
    path("", views.index, name="index"),
    path("talk/<int:pk>/", views.talk, name="talk"),
    path("bookings/", views.bookings, name="bookings"),
]
