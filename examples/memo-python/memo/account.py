"""Sign up, in and out."""
from memo import response, sessions
from memo.users import NotAccepted

SIGN_UP = {"action": "/signup", "title": "Sign up", "is_sign_up": True}
SIGN_IN = {"action": "/signin", "title": "Sign in", "is_sign_up": False}


def sign_up_form(site, request):
    """Answers GET /signup."""
    return _form(site, request, SIGN_UP)


def sign_in_form(site, request):
    """Answers GET /signin."""
    return _form(site, request, SIGN_IN)


def sign_up(site, request):
    """Answers POST /signup."""
    request.refuse_forgeries()
    name = request.field("name")
    try:
        user = site.users.sign_up(name, request.field("password"))
    except NotAccepted as problem:
        return _again(site, request, {**SIGN_UP, "name": name, "problem": str(problem)})
    return _welcome(site, request, user)


def sign_in(site, request):
    """Answers POST /signin."""
    request.refuse_forgeries()
    name = request.field("name")
    user = site.users.sign_in(name, request.field("password"))
    if user is None:
        problem = "Name or password is wrong."
        return _again(site, request, {**SIGN_IN, "name": name, "problem": problem})
    return _welcome(site, request, user)


def sign_out(site, request):
    """Answers POST /signout."""
    request.refuse_forgeries()
    site.sessions.end(request.session_token)
    return response.see_other("/", sessions.cookies_for_sign_out(request.is_https))


def _form(site, request, form):
    if request.user_signed_in:
        return response.see_other("/mypage")
    return site.personal_page(request, "account.html", form=form)


def _again(site, request, form):
    return site.personal_page(request, "account.html", 400, form=form)


def _welcome(site, request, user):
    token = site.sessions.start(user, request.session_token)
    return response.see_other("/mypage", sessions.cookies_for_sign_in(token, request.is_https))
