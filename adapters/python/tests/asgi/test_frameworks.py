"""FastAPI, Starlette and Django under the adapter, on the loop of uvloop."""
import json
import unittest

from asgi_front import AsgiFront, python_with
from client_frames import sent
from fake_front import wait_until
from test_websocket import HANDSHAKE

FASTAPI = '''
import asyncio, os
from contextlib import asynccontextmanager
from fastapi import BackgroundTasks, FastAPI, Request, UploadFile, WebSocket
from fastapi.responses import FileResponse, StreamingResponse

here = os.path.dirname(os.path.abspath(__file__))
def note(name):
    open(os.path.join(here, name), "w").close()

@asynccontextmanager
async def lifespan(app):
    yield {"database": "open"}
    note("closed")

app = FastAPI(lifespan=lifespan)

@app.get("/")
async def hello(request: Request):
    return {"database": request.state.database}

@app.get("/thread")
def thread():
    from kirin.store import current_site
    return current_site()

@app.post("/upload")
async def upload(file: UploadFile):
    return len(await file.read())

@app.get("/stream")
async def stream():
    async def parts():
        for number in range(3):
            yield str(number)
            await asyncio.sleep(0)
    return StreamingResponse(parts())

@app.get("/endless")
async def endless():
    async def parts():
        try:
            while True:
                yield "x" * 10000
        finally:
            note("ended")
    return StreamingResponse(parts())

@app.get("/file")
async def file():
    return FileResponse(__file__)

@app.get("/background")
async def background(tasks: BackgroundTasks):
    tasks.add_task(note, "background")
    return "ok"

@app.websocket("/echo")
async def echo(socket: WebSocket):
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)
    note("left")
'''

DJANGO = '''
from django.conf import settings
settings.configure(SECRET_KEY="x", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])
from django.core.asgi import get_asgi_application
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path

async def hello(request):
    return HttpResponse(f"{request.get_full_path()} {len(request.body)}")
def sync(request):
    return HttpResponse(request.META["REMOTE_ADDR"])
async def stream(request):
    async def parts():
        for number in range(3):
            yield str(number)
    return StreamingHttpResponse(parts())
urlpatterns = [path("", hello), path("sync", sync), path("stream", stream)]
application = get_asgi_application()
'''


class FrameworkTest(unittest.TestCase):
    def test_fastapi(self):
        with AsgiFront(FASTAPI, python=python_with("fastapi")) as front:
            front.ready()
            self.assertEqual(json.loads(front.get("/").body), {"database": "open"})
            self.assertEqual(front.get("/thread", KIRIN_SITE="shop").body, b'"shop"')
            self.assertEqual(front.get("/stream").body, b"012")
            self.assertIn("kirin-file", front.get("/file").header)
            self.assertEqual(front.get("/file", HTTP_RANGE="bytes=1-5").body, FASTAPI[1:6].encode())
            self.assertEqual(front.get("/background").body, b'"ok"')
            wait_until(lambda: front.noted("background"))
            body = (b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
                    + b"y" * 2_000_000 + b"\r\n--x--\r\n")
            response = front.get("/upload", REQUEST_METHOD="POST", body=body,
                                 CONTENT_TYPE="multipart/form-data; boundary=x")
            self.assertEqual(response.body, b"2000000")
            gone = front.open()
            gone.send(PATH_INFO="/endless")
            gone.read_bytes(1000)
            gone.disconnect()
            wait_until(lambda: front.noted("ended"))
            socket = front.open()
            socket.send(PATH_INFO="/echo", **HANDSHAKE)
            self.assertEqual(socket.response().status, 101)
            socket.connection.sendall(sent(1, b"hi"))
            self.assertEqual(socket.read_bytes(4), b"\x81\x02hi")
            socket.disconnect()
            wait_until(lambda: front.noted("left"))
            self.assertEqual(front.stop(), 0)
            self.assertTrue(front.noted("closed"))
            self.assertEqual(front.log(), "")

    def test_django(self):
        with AsgiFront(DJANGO, python=python_with("django")) as front:
            front.ready()
            self.assertEqual(front.request(REQUEST_METHOD="POST", body=b"abc").body, b"/ 3")
            self.assertEqual(front.get("/sync").body, b"127.0.0.1")
            self.assertEqual(front.get("/stream").body, b"012")
            self.assertEqual(front.get("/none").status, 404)
            response = front.request(SCRIPT_NAME="/m", PATH_INFO="/", REQUEST_URI="/m/?a=1",
                                     QUERY_STRING="a=1")
            self.assertEqual(response.body, b"/m/?a=1 0")


if __name__ == "__main__":
    unittest.main()
