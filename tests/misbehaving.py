"""A server on loopback that answers completions, of chats or of text, as scripted: each sentence has its behaviours."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(content, *, finish="stop", **message):
    return {"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content,
            **message}}]}  # fmt: skip


def text_completion(text, *, finish="stop", **choice):
    return {"choices": [{"index": 0, "finish_reason": finish, "text": text, **choice}]}


def asked(request):
    """What a request asks about: the last message of a chat, or the text."""
    return request["messages"][-1]["content"] if "messages" in request else request["prompt"]


class Script:
    """What is sent, and what is to be answered. A behaviour is a function of the handler; the last one stays."""

    def __init__(self, **behaviours):
        self.behaviours = {sentence.replace("_", " "): list(what) for sentence, what in behaviours.items()}
        self.requests = []
        self.lock = threading.Lock()
        self.running = self.most_running = 0

    def next(self, request):
        sentence = asked(request)
        with self.lock:
            self.requests.append(request | {"at": time.monotonic()})
            left = self.behaviours.get(sentence, [copy])
            return left.pop(0) if len(left) > 1 else left[0]

    def of(self, sentence):
        return [request for request in self.requests if asked(request) == sentence]


def send(handler, status, body, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def copy(handler):
    """Cut after the first word."""
    send(handler, 200, completion(handler.sentence.replace(" ", " | ", 1)))


def says(content, **rest):
    return lambda handler: send(handler, 200, completion(content, **rest))


def writes(text, **rest):
    return lambda handler: send(handler, 200, text_completion(text, **rest))


def status(code, **headers):
    return lambda handler: send(handler, code, {"error": {"message": f"status {code}"}}, **headers)


def hang(handler):
    time.sleep(1.5)


def truncated(handler):
    send(handler, 200, json.dumps(completion("never")).encode()[:40])


def short(handler):
    """Promise more bytes than are sent, then close."""
    handler.send_response(200)
    handler.send_header("content-length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices"')


def drop(handler):
    handler.connection.close()


def slow(handler):
    script = handler.server.script
    with script.lock:
        script.running += 1
        script.most_running = max(script.most_running, script.running)
    time.sleep(0.05)
    with script.lock:
        script.running -= 1
    copy(handler)


class Handler(BaseHTTPRequestHandler):
    """Hands each request to its behaviour."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.sentence = asked(request)
        behaviour = self.server.script.next(request | {"authorization": self.headers["authorization"]})
        # The client may have gone, which is what some behaviours are about.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ValueError):
            behaviour(self)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(script):
    """Yield the base URL of a server that follows the script."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    server.script = script
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Served(Script):
    """Answers every text with "a boat", and echoes with one token a word where `echo` holds."""

    def __init__(self, *, echo=True, begin="", **behaviours):
        super().__init__(**behaviours)
        self.echo, self.begin = echo, begin

    def next(self, request):
        default = self._echo if request.get("echo") else writes(" a boat\nand more")
        sentence = asked(request)
        with self.lock:
            self.requests.append(request)
            left = self.behaviours.get(sentence, [default])
            return left.pop(0) if len(left) > 1 else left[0]

    def _echo(self, handler):
        if not self.echo:
            send(handler, 200, text_completion(" anything", logprobs=None))
            return
        words = handler.sentence.split(" ")
        tokens = [self.begin, *words[:1], *(f" {word}" for word in words[1:]), " more"]
        offsets = [sum(map(len, tokens[:number])) for number in range(len(tokens))]
        nats = [None, None, *(-0.5 * number for number in range(2, len(tokens)))]
        kept = slice(0 if self.begin else 1, None)
        logprobs = {"tokens": tokens[kept], "token_logprobs": nats[kept], "text_offset": offsets[kept]}
        send(handler, 200, text_completion("".join(tokens), logprobs=logprobs))
