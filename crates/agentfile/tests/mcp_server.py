#!/usr/bin/env python3
"""A small MCP server for the tests, over standard input and output or, with --http, over streamable HTTP.

It writes each call that really ran as a line into the file named by CALLS, so that a test can count runs.
"""
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIELDS = {"day": {"type": "string"}, "title": {"type": "string"}}
TOOLS = [
    {"name": "list_events", "description": "Lists events.", "inputSchema": {"type": "object", "properties": {}},
     "annotations": {"readOnlyHint": True}},
    {"name": "create_event", "description": "Creates an event.",
     "inputSchema": {"type": "object", "required": ["day", "title"], "properties": FIELDS},
     "annotations": {"destructiveHint": False}},
    {"name": "delete_event", "description": "Deletes an event.",
     "inputSchema": {"type": "object", "required": ["day"], "properties": FIELDS}},
    {"name": "slow", "inputSchema": {"type": "object"}},
    {"name": "dies", "inputSchema": {"type": "object"}},
    {"name": "refuses", "inputSchema": {"type": "object"}},
    {"name": "fails", "inputSchema": {"type": "object"}},
    {"name": "floods", "inputSchema": {"type": "object"}},
    {"name": "structured", "inputSchema": {"type": "object"}},
]


def note(name, key):
    if "CALLS" in os.environ:
        with open(os.environ["CALLS"], "a") as calls:
            calls.write(f"{name} {key}\n")


def call(params):
    name, arguments = params["name"], params.get("arguments", {})
    note(name, params.get("_meta", {}).get("sayback/idempotencyKey"))
    text = lambda words, **more: {"content": [{"type": "text", "text": words}], **more}
    if name == "create_event":
        return text(f"{arguments['title']} on {arguments['day']} is in.")
    if name == "slow":
        time.sleep(600)
    if name == "dies":
        os._exit(1)
    if name == "fails":
        return text("That day is taken.", isError=True)
    if name == "floods":
        return text("x" * 70_000)
    if name == "structured":
        return {"content": [], "structuredContent": {"ok": True, "message": "Room 4."}}
    if name == "refuses":
        raise ValueError("not today")
    return text("Nothing.")


def answer(message):
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        return None
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        known = version if version <= "2025-11-25" else "2025-06-18"
        return {**reply, "result": {"protocolVersion": known, "capabilities": {"tools": {}},
                                    "serverInfo": {"name": "made up", "version": "1"}}}
    if method == "tools/list":
        # Two pages: a client that reads only the first misses some.
        page = params.get("cursor") is not None
        more = {} if page else {"nextCursor": "2"}
        return {**reply, "result": {"tools": TOOLS[3:] if page else TOOLS[:3], **more}}
    if method == "tools/call":
        try:
            return {**reply, "result": call(params)}
        except ValueError as error:
            return {**reply, "error": {"code": -32602, "message": str(error)}}
    return {**reply, "error": {"code": -32601, "message": f"no method {method}"}}


class Post(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != "Bearer secret":
            return self.give(401, b"")
        reply = answer(json.loads(body))
        self.give(200 if reply else 202, json.dumps(reply).encode() if reply else b"")

    def do_GET(self):
        self.give(405, b"")

    do_DELETE = do_GET

    def give(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if "--http" in sys.argv:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Post)
    print(server.server_address[1], flush=True)
    server.serve_forever()
else:
    print("made up server, ready", file=sys.stderr)
    for line in sys.stdin:
        reply = answer(json.loads(line))
        if reply:
            print(json.dumps(reply), flush=True)
