// A caller of werift: asks over WHIP, speaks PCMU, answers behind the question or over it.
//   node werift_caller.mjs FOLDER_OF_NODE_MODULES URL CLIPS [--over]
import { createRequire } from "node:module";
import fs from "node:fs";
const [, , modules, url, clips, over] = process.argv;
const { RTCPeerConnection, RTCRtpCodecParameters, MediaStreamTrack, RtpPacket, RtpHeader } =
  createRequire(`${modules}/`)("werift");

const codec = new RTCRtpCodecParameters({ mimeType: "audio/PCMU", clockRate: 8000, channels: 1, payloadType: 0 });
const peer = new RTCPeerConnection({ codecs: { audio: [codec] } });
const track = new MediaStreamTrack({ kind: "audio" });
const transceiver = peer.addTransceiver(track, { direction: "sendrecv" });

const loudness = (byte) => {
  const value = ~byte & 0xff;
  return ((((value & 0x0f) << 3) + 132) << ((value >> 4) & 7)) - 132;
};

// The clips are PCMU as they are.
const read = (name) => {
  const bytes = fs.readFileSync(`${clips}/${name}`);
  return [...bytes.subarray(bytes.indexOf("data") + 8)];
};

const mouth = [];
let [sequence, timestamp] = [100, 5000];
const began = Date.now();
let sent = 0;
const speak = () => {
  while (sent * 20 < Date.now() - began) {
    const block = Array.from({ length: 160 }, () => mouth.shift() ?? 0xff);
    const header = new RtpHeader({ sequenceNumber: (sequence = (sequence + 1) & 0xffff), timestamp, payloadType: 0 });
    timestamp += 160;
    sent += 1;
    track.writeRtp(new RtpPacket(header, Buffer.from(block)));
  }
};

const heard = { bursts: 0, loud: 0 };
peer.onTrack.subscribe((remote) =>
  remote.onReceiveRtp.subscribe(({ payload }) => {
    if (Math.max(...Array.from(payload, loudness)) < 600) return;
    if (Date.now() - heard.loud > 600) heard.bursts += 1;
    heard.loud = Date.now();
  }),
);
const until = async (test) => {
  for (const limit = Date.now() + 40000; !test(); await new Promise((done) => setTimeout(done, 10))) {
    if (Date.now() > limit) throw new Error(`waited in vain: ${JSON.stringify(heard)}`);
  }
};
const quiet = (bursts, ms) => until(() => heard.bursts >= bursts && Date.now() - heard.loud > ms);

await peer.setLocalDescription(await peer.createOffer());
await until(() => peer.iceGatheringState === "complete");
const response = await fetch(`${url}/v1/webrtc?agent=clinic`, {
  method: "POST", headers: { "content-type": "application/sdp" }, body: peer.localDescription.sdp });
const text = await response.text();
if (!response.ok) throw new Error(text);
await peer.setRemoteDescription({ type: "answer", sdp: text });
const location = response.headers.get("location");
await until(() => peer.connectionState === "connected");
setInterval(speak, 10);
await quiet(1, 1500);
const before = heard.bursts;
mouth.push(...read("book-phone.wav"));
if (over) {
  await until(() => heard.bursts > before);
  await new Promise((done) => setTimeout(done, 800));
} else {
  await quiet(before + 1, 1500);
}
mouth.push(...read("yes-please-phone.wav"));
await new Promise((done) => setTimeout(done, 6000));
await fetch(url + location, { method: "DELETE" });
console.log(JSON.stringify({ call: location.split("/").pop() }));
process.exit(0);
