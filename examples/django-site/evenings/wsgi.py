"""The application that Kirin loads."""
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evenings.settings")
application = get_wsgi_application()
