from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Book",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=200)),
                ("pages", models.PositiveIntegerField(default=1)),
                ("text", models.FileField(blank=True, upload_to="texts")),
            ],
            options={"ordering": ["title"]},
        )
    ]
