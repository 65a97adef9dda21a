"""One's own memos."""
import re

from memo import response
from memo.response import Refusal

LONGEST_MEMO = 64_000
LINE_END = re.compile(r"\r\n?")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def mypage(site, request):
    """Answers GET /mypage: the form and all memos of the visitor."""
    user = request.user_signed_in
    if user is None:
        return response.see_other("/signin")
    return _mypage(site, request, user, 200, {})


def write(site, request):
    """Answers POST /memo."""
    request.refuse_forgeries()
    user = request.user_signed_in
    if user is None:
        raise Refusal(403, "Sign in to write a memo.")
    # Browsers send CR LF. Other control characters are removed.
    content = CONTROL.sub("", LINE_END.sub("\n", request.field("content")))
    is_private = bool(request.field("is_private"))
    problem = _problem(content)
    if problem:
        form = {"problem": problem, "content": content, "is_private": is_private}
        return _mypage(site, request, user, 400, form)

    memo_id = site.memos.create(
        user["id"], content, is_private, lambda: site.private_pages.author_writes(user["id"])
    )
    if not is_private:
        site.pages.memo_was_added()
    return response.see_other(f"/memo/{memo_id}")


def _problem(content):
    if not content.strip():
        return "A memo has at least one word."
    if len(content) > LONGEST_MEMO:
        return f"A memo has at most {LONGEST_MEMO} characters."
    return None


def _mypage(site, request, user, status, form):
    return site.personal_page(
        request, "mypage.html", status, form=form, memos=site.memos.of_user(user["id"])
    )
