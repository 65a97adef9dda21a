"""A Flask application with sessions, messages, streams, files and a part under a mount."""
import hashlib
import os

from flask import (
    Blueprint, Flask, abort, flash, get_flashed_messages, jsonify, make_response, redirect,
    render_template, request, send_file, session, stream_with_context, url_for,
)
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.dispatcher import DispatcherMiddleware

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURE = os.path.join(HERE, "static", "picture.svg")

flask_app = Flask(__name__)
flask_app.secret_key = "the-key-of-a-site-that-only-tests-use"
flask_app.config["MAX_CONTENT_LENGTH"] = 4_000_000
archive = Blueprint("archive", __name__, url_prefix="/archive")


@flask_app.route("/")
def index():
    session["visits"] = session.get("visits", 0) + 1
    return render_template("index.html", messages=get_flashed_messages(with_categories=True))


@flask_app.post("/note")
def note():
    text = request.form["text"]
    if not text.strip():
        abort(422, "a note has a text")
    session["notes"] = [*session.get("notes", []), text]
    flash(f"noted: {text}", "success")
    return redirect(url_for("index"))


@flask_app.route("/logout")
def logout():
    session.clear()
    return redirect(url_for("index"))


@flask_app.route("/echo/<path:rest>", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
def echo(rest):
    """Says what Flask sees of a request. Kirin gives each request an id and a length."""
    body = request.get_data()
    return jsonify(
        method=request.method, rest=rest, url=request.url, root=request.root_path,
        script=request.environ["SCRIPT_NAME"], path=request.environ["PATH_INFO"],
        query=request.args.to_dict(flat=False), form=request.form.to_dict(flat=False),
        body=body.decode("latin-1")[:100], size=len(body), sha1=hashlib.sha1(body).hexdigest(),
        fields={
            name: value for name, value in request.headers
            if name not in ("X-Request-Id", "Content-Length", "Transfer-Encoding")
        },
    )


@flask_app.post("/upload")
def upload():
    return jsonify(
        fields=request.form.to_dict(flat=False),
        files=[
            [file.filename, file.mimetype, hashlib.sha1(file.read()).hexdigest()]
            for file in request.files.getlist("file")
        ],
    )


@flask_app.route("/picture")
def picture():
    return send_file(PICTURE, max_age=600, last_modified=1_700_000_000, etag="picture")


@flask_app.route("/plain-picture")
def plain_picture():
    return send_file(PICTURE, conditional=False, etag=False, as_attachment=True)


@flask_app.route("/stream")
def stream():
    def parts():
        for number in range(100):
            yield f"{request.args['word']} {number}\n" * 50

    return flask_app.response_class(stream_with_context(parts()), mimetype="text/plain")


@flask_app.route("/empty-stream")
def empty_stream():
    return flask_app.response_class(iter([b"", b""]), mimetype="text/plain")


@flask_app.route("/status/<int:code>")
def status(code):
    return make_response("" if code in (204, 304) else f"status {code}", code)


@flask_app.route("/cookies")
def cookies():
    response = make_response(f"before: {request.cookies.get('plain')}")
    response.set_cookie("plain", "käse; a=b", max_age=600)
    response.set_cookie("path", "1", path="/archive", samesite="Lax", httponly=True)
    return response


@flask_app.route("/broken")
def broken():
    raise ValueError("no such luck")


@flask_app.errorhandler(422)
def not_accepted(error):
    return jsonify(error=error.description), 422


@flask_app.errorhandler(HTTPException)
def other_errors(error):
    return f"error page: {error.code} {error.name}", error.code


@archive.route("/<int:year>/")
def of_year(year):
    return f"the archive of {year}, at {url_for('archive.of_year', year=year, _external=True)}"


flask_app.register_blueprint(archive)
application = DispatcherMiddleware(flask_app, {"/mounted": flask_app})
