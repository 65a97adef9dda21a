"""The site that `wagtail start` generates, with a kirin.toml, compared with gunicorn."""
import os
import shutil
import unittest

import software
from content import Form, Multipart
from differences import OF_A_NEW_FILE, TIME_FOR_PEOPLE
from differential import Differential
from html_form import fields_of_form
from picture import png
from project import Project
from served import Served

# Tokens against forged requests, and the time of now in three forms.
RANDOM = [
    r"\b[a-zA-Z0-9]{64}\b",
    r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00",
    TIME_FOR_PEOPLE,
    r"Just now|\d+ minutes? ago",
]

PRODUCTION = {"DJANGO_SETTINGS_MODULE": "press.settings.production"}


class Press(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        project = Project(os.path.join(software.environment(), "wagtail-site"))
        cls.addClassCleanup(project.remove)
        shutil.copy(os.path.join(software.APPS, "wagtail", "kirin.toml"), project.made)
        cls.kirin = Served.by_kirin_toml(project.copy("kirin"), **PRODUCTION)
        cls.addClassCleanup(cls.kirin.stop)
        cls.gunicorn = Served.by_gunicorn(
            project.copy("gunicorn"), "press.wsgi:application", **PRODUCTION
        )
        cls.addClassCleanup(cls.gunicorn.stop)

    def setUp(self):
        self.session = Differential(self, self.kirin, self.gunicorn, RANDOM)
        self.step = self.session.step

    def send(self, what, action, status, make=Form, files=(), **changes):
        """Sends the form of the last page."""
        return self.step(
            what, "POST", action, status,
            content=lambda browser: make([
                *fields_of_form(browser.last, action, **changes), *files,
            ]),
        )

    def sign_in(self):
        self.step("the form", "GET", "/admin/login/", 200)
        self.send("signing in", "/admin/login/", 302, username="ann", password="oak")

    def test_a_page_is_written_published_and_found(self):
        step, send = self.step, self.send
        step("the first page", "GET", "/", 200, body="Welcome to your new Wagtail site")
        step("the admin without a session", "GET", "/admin/", 302)
        self.sign_in()
        step("the admin", "GET", "/admin/", 200, body="ann")
        step("the pages", "GET", "/admin/pages/3/", 200)
        add = "/admin/pages/add/home/homepage/3/"
        step("an empty page", "GET", add, 200)
        send("a page without a title", add, 200, slug="none")
        send("a draft", add, 302, title="Üble Eichen", slug="oaks")
        step("the draft", "GET", "/admin/pages/4/edit/", 200, body="Üble Eichen")
        step("nobody sees it", "GET", "/oaks/", 404)
        step("the draft again", "GET", "/admin/pages/4/edit/", 200)
        send("it is published", "/admin/pages/4/edit/", 302,
             **{"title": "Üble Eichen", "action-publish": "action-publish"})
        step("its message", "GET", "/admin/pages/3/", 200, body="has been published|Published")
        step("the page", "GET", "/oaks/", 200, body="<title>.*Üble Eichen")
        step("without the slash", "GET", "/oaks", 301, field=("Location", "/oaks/"))
        step("the search", "GET", "/search/?query=Eichen", 200, body='href="/oaks/">Üble Eichen')
        step("no match", "GET", "/search/?query=Elm", 200, body="No results found")
        step("the search of the admin", "GET", "/admin/pages/search/?q=Eichen", 200, body="Eichen")
        step("its history", "GET", "/admin/pages/4/history/", 200, body="Published")
        step("may it go", "GET", "/admin/pages/4/unpublish/", 200)
        send("it goes", "/admin/pages/4/unpublish/", 302)
        step("nobody sees it", "GET", "/oaks/", 404)

    def test_a_picture_and_its_renditions(self):
        step, send = self.step, self.send
        self.sign_in()
        step("the form", "GET", "/admin/images/add/", 200)
        send("no picture", "/admin/images/add/", 200, make=Multipart, title="text",
             files=[("file", ("a.png", "image/png", b"no picture"))])
        send("a picture", "/admin/images/add/", 302, make=Multipart, title="Colours",
             files=[("file", ("colours.png", "image/png", png(600, 400)))])
        listing = step("the pictures", "GET", "/admin/images/", 200, body="Colours")
        small = listing.find(r'src="(/media/images/colours[^"]*)"')
        step("a rendition", "GET", small, 200, field=("Content-Type", "image/png"),
             ignored=OF_A_NEW_FILE)
        step("its head", "HEAD", small, 200, ignored=OF_A_NEW_FILE)
        page = step("the picture's page", "GET", "/admin/images/1/", 200, body="600x400|600×400")
        whole = page.find(r'href="(/media/images/[^"]*)"')
        step("the picture in its own size", "GET", whole, 200, body="^.PNG",
             ignored=OF_A_NEW_FILE)
        step("may it go", "GET", "/admin/images/1/delete/", 200)
        send("it goes", "/admin/images/1/delete/", 302)
        step("it has gone", "GET", "/admin/images/1/", 404)

    def test_static_files_have_names_by_their_content(self):
        self.sign_in()
        page = self.step("a page", "GET", "/admin/", 200)
        style = page.find(r'href="(?://site\.example)?(/static/wagtailadmin/css/core\.\w+\.css)"')
        # gunicorn serves no static files.
        self.step("its style", "GET", style, 200, body="^[^<]", other_status=404)
        self.kirin.has_logged(f"200 GET {style} .* files\n")


if __name__ == "__main__":
    unittest.main()
