"""A FastAPI application on Starlette with what only ASGI has: WebSockets, lifespan, tasks."""
import asyncio
import hashlib
import os
import sys
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import (
    BackgroundTasks, Depends, FastAPI, File, Form, Header, HTTPException, Request, UploadFile,
    WebSocket, WebSocketDisconnect,
)
from fastapi.responses import (
    FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, StreamingResponse,
)
from pydantic import BaseModel, Field
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.staticfiles import StaticFiles

HERE = os.path.dirname(os.path.abspath(__file__))


def log(text):
    print(text, file=sys.stderr, flush=True)


@asynccontextmanager
async def lifespan(app):
    log("lifespan: startup")
    yield {"greeting": "hello from the lifespan"}
    log("lifespan: shutdown")


app = FastAPI(lifespan=lifespan)
app.add_middleware(GZipMiddleware, minimum_size=500)
app.add_middleware(CORSMiddleware, allow_origins=["http://a.example"], allow_credentials=True)
app.add_middleware(SessionMiddleware, secret_key="the-key-of-a-site-that-only-tests-use")
app.mount("/static", StaticFiles(directory=os.path.join(HERE, "static")))


@app.middleware("http")
async def marked(request, call_next):
    response = await call_next(request)
    response.headers["X-Marked"] = request.method
    return response


class Item(BaseModel):
    name: str
    price: float = Field(gt=0)
    tags: list[str] = []


@app.get("/")
async def index(request: Request):
    return {"greeting": request.state.greeting}


@app.post("/items", status_code=201)
async def add(item: Item):
    return item


@app.get("/items/{number}")
async def item(number: int, q: str | None = None):
    if number > 100:
        raise HTTPException(404, "no such item", headers={"X-Reason": "too large"})
    return {"number": number, "q": q}


def signed(authorization: Annotated[str | None, Header()] = None):
    if authorization != "Bearer oak":
        raise HTTPException(401, "sign in", headers={"WWW-Authenticate": "Bearer"})
    return "ann"


@app.get("/inside")
def inside(user: Annotated[str, Depends(signed)]):
    """It runs in a thread, because it is no coroutine."""
    return {"user": user}


@app.post("/form")
async def form(text: Annotated[str, Form()], number: Annotated[int, Form()] = 1):
    return {"text": text, "number": number}


@app.post("/upload")
async def upload(note: Annotated[str, Form()], files: Annotated[list[UploadFile], File()]):
    return {
        "note": note,
        "files": [
            [file.filename, file.content_type, hashlib.sha1(await file.read()).hexdigest()]
            for file in files
        ],
    }


@app.api_route("/echo/{rest:path}", methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
async def echo(request: Request, rest: str):
    """Says what the application sees of a request. Kirin gives each an id and a length."""
    body = await request.body()
    scope = request.scope
    return {
        "rest": rest, "url": str(request.url), "query": request.query_params.multi_items(),
        "body": body.decode("latin-1")[:100], "size": len(body),
        "sha1": hashlib.sha1(body).hexdigest(),
        "scope": [scope[k] for k in ("type", "method", "scheme", "http_version", "path")],
        "raw": [scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")],
        "root": scope["root_path"], "host": request.client.host,
        "fields": sorted(
            (name, value) for name, value in request.headers.items()
            if name not in ("x-request-id", "content-length", "transfer-encoding")
        ),
    }


@app.post("/pieces")
async def pieces(request: Request):
    """Reads the body as it comes."""
    digest, size = hashlib.sha1(), 0
    async for piece in request.stream():
        digest.update(piece)
        size += len(piece)
    return {"size": size, "sha1": digest.hexdigest()}


@app.post("/unread")
async def unread():
    return PlainTextResponse("the body was not read")


@app.get("/visits")
async def visits(request: Request):
    request.session["visits"] = request.session.get("visits", 0) + 1
    return {"visits": request.session["visits"]}


@app.get("/cookies")
async def cookies(request: Request):
    response = HTMLResponse(f"before: {request.cookies.get('plain')}")
    response.set_cookie("plain", "a b;c", max_age=600, samesite="strict")
    response.set_cookie("second", "2", httponly=True, secure=True)
    return response


@app.get("/moved")
async def moved():
    return RedirectResponse("/items/7?q=ü", status_code=308)


@app.get("/stream")
async def stream():
    async def parts():
        for number in range(100):
            yield f"line {number}\n" * 50
            await asyncio.sleep(0)

    return StreamingResponse(parts(), media_type="text/plain")


@app.get("/thread-stream")
def thread_stream():
    return StreamingResponse((f"line {n}\n" for n in range(100)), media_type="text/plain")


@app.get("/file")
async def file():
    return FileResponse(os.path.join(HERE, "static", "picture.svg"), filename="Bild ä.svg")


@app.get("/later")
async def later(tasks: BackgroundTasks, word: str):
    tasks.add_task(log, f"background: {word}")
    return "later"


@app.get("/events")
async def events(name: str):
    """Server-sent events without an end."""
    async def parts():
        number = 0
        try:
            while True:
                number += 1
                yield f"event: tick\ndata: {number}\n\n"
                await asyncio.sleep(0.01)
        finally:
            log(f"events of {name} have ended")

    return StreamingResponse(parts(), media_type="text/event-stream")


@app.get("/broken")
async def broken():
    raise RuntimeError("the application has broken")


@app.get("/broken-thread")
def broken_thread():
    raise RuntimeError("the thread has broken")


@app.websocket("/socket/{room}")
async def socket(websocket: WebSocket, room: str):
    """Sends back what comes, with what the handshake had."""
    offered = websocket.scope["subprotocols"]
    await websocket.accept(
        subprotocol=offered[-1] if offered else None, headers=[(b"x-room", room.encode())]
    )
    await websocket.send_json(
        {
            "greeting": websocket.state.greeting, "room": room,
            "q": websocket.query_params.get("q"), "path": websocket.scope["path"],
            "cookie": websocket.cookies.get("a"), "subprotocols": offered,
        }
    )
    try:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message["code"], message.get("reason"))
            if message.get("text") == "close":
                await websocket.close(4001, "as you like")
                return
            if message.get("text") == "break":
                raise RuntimeError("the socket has broken")
            if message.get("bytes") is not None:
                await websocket.send_bytes(message["bytes"][::-1])
            else:
                await websocket.send_text(message["text"][::-1])
    except WebSocketDisconnect as end:
        log(f"socket of {room} has ended: {end.code} {end.reason or ''}")


@app.websocket("/refused")
async def refused(websocket: WebSocket):
    await websocket.close()


@app.websocket("/refused-with-a-page")
async def refused_with_a_page(websocket: WebSocket):
    await websocket.send_denial_response(
        PlainTextResponse("members only", 402, headers={"X-Reason": "money"})
    )
