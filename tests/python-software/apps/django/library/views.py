import hashlib
import logging

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, HttpResponse, JsonResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import etag, require_http_methods

from .models import Book

log = logging.getLogger(__name__)


@require_http_methods(["GET", "HEAD", "POST"])
def index(request):
    """The list of books, and a form for another one."""
    if request.method == "POST":
        book = Book(title=request.POST["title"], text=request.FILES.get("text"))
        book.save()
        log.info("a book was added: %s", book.title)
        messages.success(request, f"“{book.title}” is on the shelf")
        return redirect("/")
    return render(request, "library/index.html", {"books": Book.objects.all()})


def text(request, number):
    book = get_object_or_404(Book, pk=number)
    return FileResponse(book.text.open(), as_attachment="save" in request.GET)


def file(request, number):
    """Returns the same as a file of the system, which `wsgi.file_wrapper` can hand back."""
    return FileResponse(open(get_object_or_404(Book, pk=number).text.path, "rb"))


@csrf_exempt
def describe(request):
    """Says what has come as a form with files, and where Django keeps each file."""
    return JsonResponse(
        {
            "fields": {name: request.POST.getlist(name) for name in request.POST},
            "files": [
                {
                    "field": name,
                    "name": file.name,
                    "kept": type(file).__name__,
                    "type": file.content_type,
                    "size": file.size,
                    "sha1": hashlib.sha1(file.read()).hexdigest(),
                }
                for name, files in request.FILES.lists()
                for file in files
            ],
        }
    )


@csrf_exempt
def echo(request, rest=""):
    """Says what Django sees of a request.

    Kirin always says a length, also 0, and gives each request an id.
    """
    return JsonResponse(
        {
            "method": request.method,
            "rest": rest,
            "path": request.get_full_path(),
            "uri": request.build_absolute_uri(),
            "query": dict(request.GET.lists()),
            "form": dict(request.POST.lists()),
            "body": request.body.decode("latin-1"),
            "type": request.content_type,
            "cookies": request.COOKIES,
            "fields": {
                name: value
                for name, value in sorted(request.headers.items())
                if name != "X-Request-Id" and (name, value) != ("Content-Length", "0")
            },
        },
        json_dumps_params={"indent": 1},
    )


def visits(request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    return HttpResponse(f"visit {request.session['visits']}")


def cookies(request):
    known = [request.COOKIES.get(name) for name in ("plain", "strict", "gone")]
    response = HttpResponse(f"before: {known}")
    response.set_cookie("plain", "a b;c", max_age=3600)
    response.set_cookie("strict", "ü", secure=True, httponly=True, samesite="Strict")
    response.delete_cookie("gone")
    return response


def pages(request):
    return StreamingHttpResponse((f"page {n}\n" * 100 for n in range(1, 51)))


@gzip_page
@etag(lambda request: '"seven"')
def conditional(request):
    return HttpResponse("seven " * 200)


def moved(request):
    return redirect("/inside/?from=ü", permanent=True)


@login_required
def inside(request):
    return HttpResponse(f"Hello {request.user}")


async def asynchronous(request):
    return HttpResponse("from a coroutine")


def broken(request):
    raise RuntimeError("the shelf has fallen down")
