from django.urls import path

from . import views

urlpatterns = [
    path("", views.index),
    path("books/<int:number>/text", views.text, name="text"),
    path("books/<int:number>/file", views.file),
    path("describe/", views.describe),
    path("echo/<path:rest>", views.echo),
    path("echo/", views.echo),
    path("visits/", views.visits),
    path("cookies/", views.cookies),
    path("pages/", views.pages),
    path("conditional/", views.conditional),
    path("moved/", views.moved),
    path("inside/", views.inside),
    path("asynchronous/", views.asynchronous),
    path("broken/", views.broken),
]
