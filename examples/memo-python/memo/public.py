"""The pages for everybody, and the parts of them that are for one visitor."""
from memo import response
from memo.response import Refusal


def page(site, request, _number=None):
    """Answers GET / and /recent/N, if the store has no such page."""
    answer = _public_page(site, request)
    if answer is None:
        raise Refusal(404, "There is no such page.")
    return answer


def memo(site, request, memo_id):
    """Answers GET /memo/N.

    Public memos are as above. A private memo is for its author. For others it does not exist.
    """
    answer = _public_page(site, request)
    if answer is not None:
        return answer
    own = _own_memo(site, request, memo_id)
    if own is None:
        raise Refusal(404, "There is no such memo, or it is not yours to read.")
    return response.personal_page(site.private_pages.page(own, request.csrf_token()))


def neighbours(site, request, memo_id):
    """Answers GET /memo/N/neighbours: the links that only the author sees.

    The page of a public memo includes them for its author.
    """
    own = _own_memo(site, request, memo_id)
    if own is None:
        raise Refusal(404, "There is no such memo, or it is not yours.")
    return response.personal_page(site.private_pages.neighbours(own))


def session_bar(site, request):
    """Answers GET /session-bar.

    Public pages include it if the store has no copy of the visitor's session. Looking at the
    session writes the copy again.
    """
    return response.personal_page(site.session_bar(request))


def _public_page(site, request):
    user = request.user_signed_in
    html = site.pages.answer(request.path, site.session_bar(request), user and user["id"])
    if html is None:
        return None
    return response.personal_page(html) if user else response.public_page(html)


def _own_memo(site, request, memo_id):
    """Returns the memo, if the visitor has written it."""
    user = request.user_signed_in
    found = site.memos.find(memo_id) if user else None
    return found if found and found["user_id"] == user["id"] else None
