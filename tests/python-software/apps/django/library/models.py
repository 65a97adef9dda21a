from django.db import models


class Book(models.Model):
    title = models.CharField(max_length=200)
    pages = models.PositiveIntegerField(default=1)
    text = models.FileField(upload_to="texts", blank=True)

    class Meta:
        ordering = ["title"]

    def __str__(self):
        return self.title
