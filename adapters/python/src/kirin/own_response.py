"""The responses of a worker itself, of which the text is the reason phrase."""


def parts(status, request_id):
    """Returns the headers and the text of a response with a status such as `500 Internal …`.

    The visitor gets the id of the request, as in Kirin's own responses, and the log has the reason
    beside it.
    """
    headers = [("Content-Type", "text/plain")]
    text = status[4:] + "\n"
    if isinstance(request_id, str) and request_id.isascii() and request_id.isprintable() \
            and request_id and " " not in request_id:
        headers.append(("X-Request-Id", request_id))
        text += f"Request id: {request_id}\n"
    return headers, text.encode("ascii")
