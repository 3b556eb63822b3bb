"""A caller of aiortc: asks over WHIP, sends a clip, answers behind the question or over it."""
import argparse, asyncio, fractions, json, sys, time, urllib.request, wave
import array
from aiortc import RTCPeerConnection, RTCSessionDescription, MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

RATE = 16000
def read(path):
    with wave.open(path) as file:
        return file.readframes(file.getnframes())

class Mouth(MediaStreamTrack):
    kind = "audio"
    def __init__(self):
        super().__init__()
        self.queue = b""
        self.start, self.sent = None, 0
    def say(self, samples):
        self.queue += samples
    async def recv(self):
        if self.readyState != "live":
            raise MediaStreamError
        now = time.monotonic()
        self.start = self.start or now
        wait = self.start + self.sent / RATE - now
        if wait > 0:
            await asyncio.sleep(wait)
        size = RATE // 50
        block = self.queue[:2 * size].ljust(2 * size, b"\0")
        self.queue = self.queue[2 * size:]
        frame = AudioFrame(format="s16", layout="mono", samples=size)
        frame.planes[0].update(block)
        frame.pts, frame.sample_rate, frame.time_base = self.sent, RATE, fractions.Fraction(1, RATE)
        self.sent += size
        return frame

async def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("url"); arguments.add_argument("clips"); arguments.add_argument("--over", action="store_true")
    arguments = arguments.parse_args()
    peer = RTCPeerConnection()
    mouth = Mouth()
    peer.addTrack(mouth)
    heard = {"loud": 0.0, "bursts": 0, "quiet": 0.0}
    @peer.on("track")
    def on_track(track):
        async def listen():
            while True:
                try:
                    frame = await track.recv()
                except MediaStreamError:
                    return
                level = max(map(abs, array.array("h", bytes(frame.planes[0]))), default=0)
                now = time.monotonic()
                if level > 600:
                    if now - heard["loud"] > 0.6:
                        heard["bursts"] += 1
                        heard["began"] = now
                    heard["loud"] = now
        asyncio.ensure_future(listen())
    await peer.setLocalDescription(await peer.createOffer())
    sdp = peer.localDescription.sdp
    request = urllib.request.Request(arguments.url + "/v1/webrtc?agent=clinic", data=sdp.encode(), headers={"content-type": "application/sdp"})
    with urllib.request.urlopen(request) as answer:
        location = answer.headers["location"]
        text = answer.read().decode()
    print(text, location, file=sys.stderr)
    await peer.setRemoteDescription(RTCSessionDescription(text, "answer"))
    async def quiet(burst, silence):
        limit = time.monotonic() + 40
        while time.monotonic() < limit:
            await asyncio.sleep(0.02)
            if heard["bursts"] >= burst and time.monotonic() - heard["loud"] > silence:
                return
        raise SystemExit(f"nothing was heard: {heard}")
    await quiet(1, 1.5)
    bursts = heard["bursts"]
    mouth.say(read(arguments.clips + "/book.wav"))
    if arguments.over:
        while heard["bursts"] <= bursts: await asyncio.sleep(0.02)
        await asyncio.sleep(0.8)
    else:
        await quiet(bursts + 1, 1.0)
    mouth.say(read(arguments.clips + "/yes-please.wav"))
    await asyncio.sleep(6)
    print(json.dumps({"call": location.rsplit("/", 1)[1]}))
    urllib.request.urlopen(urllib.request.Request(arguments.url + location, method="DELETE"))
    await peer.close()
asyncio.run(main())
