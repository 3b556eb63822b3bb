// A caller in a page: says its clips when the agent has been heard, listens, and tells what came of it.
// The test puts a plan in front of it: { clips: { name: base64 of a WAV }, over: boolean, microphone: boolean }.
(async (plan) => {
  const { connect } = await import("/sayback.js");
  const context = new AudioContext();
  await context.resume();
  const mouth = context.createMediaStreamDestination();
  // Silence, so that the caller's sound flows from the beginning.
  const silence = context.createConstantSource();
  silence.offset.value = 0;
  silence.connect(mouth);
  silence.start();
  const clips = {};
  for (const [name, text] of Object.entries(plan.clips)) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    clips[name] = await context.decodeAudioData(bytes.buffer);
  }
  const say = (name) => {
    const source = new AudioBufferSourceNode(context, { buffer: clips[name] });
    source.connect(mouth);
    source.start();
  };

  if (plan.relay) {
    // The server's own candidates are replaced by the relay, which then learns where the server is.
    const real = window.fetch;
    window.fetch = async (address, request) => {
      const ways = request && ["POST", "PATCH"].includes(request.method);
      // Nor does the server learn where the browser is: every packet has to take the relay.
      const body = ways ? request.body.replace(/a=candidate:.*\r\n/g, "") : undefined;
      const response = await real(address, ways ? { ...request, body } : request);
      if (!ways || !response.ok) return response;
      const text = await response.text();
      const port = / 127\.0\.0\.1 (\d+) typ host/.exec(text)?.[1];
      if (port) await real(`http://${plan.orders}/server/${port}`);
      const [host, at] = plan.relay.split(":");
      const told = text.replace(/ 127\.0\.0\.1 \d+ typ host/g, ` ${host} ${at} typ host`);
      const { status, headers } = response;
      return new Response(response.status === 204 ? null : told, { status, headers });
    };
  }

  const events = [];
  const states = [];
  // The least distance between the call's clock and ours that an event has shown.
  let behind = Infinity;
  const call = await connect({ agent: "clinic", stream: plan.microphone ? undefined : mouth.stream });
  call.on("state", (state) => states.push(state));

  // What really sounds: blocks of 128 samples with the time at which they leave the page.
  const code = `registerProcessor("tap", class extends AudioWorkletProcessor {
    process([input]) {
      const samples = input[0] ?? [];
      let peak = 0;
      for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
      if (peak > 0.003) this.port.postMessage([currentTime + samples.length / sampleRate, peak]);
      return true;
    }
  })`;
  await context.audioWorklet.addModule(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const tap = new AudioWorkletNode(context, "tap");
  context.createMediaStreamSource(call.remote).connect(tap);
  tap.connect(context.destination);
  const loud = [];
  tap.port.onmessage = ({ data: [time, peak] }) => {
    const stamp = context.getOutputTimestamp();
    loud.push([stamp.performanceTime + (time - stamp.contextTime) * 1000, peak]);
  };

  const wait = (test, limit) =>
    new Promise((done, fail) => {
      const until = performance.now() + limit;
      const look = setInterval(() => {
        const found = test();
        if (found || performance.now() > until) {
          clearInterval(look);
          found ? done(found) : fail(new Error(`waited in vain for ${test}: ${JSON.stringify(events)}`));
        }
      }, 10);
    });
  const event = (name) => events.find((line) => line.event === name);
  call.on("event", (line) => {
    events.push({ ...line, page_ms: performance.now() });
    behind = Math.min(behind, performance.now() - line.t_ms);
  });
  const said = { muted: call.muted, id: call.id };
  if (!plan.microphone) {
    await wait(() => event("agent.heard"), 30000);
    say("book");
  }
  const question = await wait(() => event("question.started"), 45000);
  if (plan.disturb) {
    // While the question sounds, the network breaks for two seconds, or the way becomes another one.
    await wait(() => performance.now() > question.page_ms + 1500, 5000);
    await fetch(`http://${plan.orders}/${plan.disturb}`);
    await wait(() => performance.now() > question.page_ms + 9000, 12000);
    say("yes");
    const said = performance.now();
    await wait(() => performance.now() > said + 6000, 8000);
  } else if (plan.lossy) {
    // How much of the question gets through is chance; the call goes on either way.
    await wait(() => event("question.heard") || event("question.dropped"), 30000);
    say("yes");
    const answered = (line) => line.event === "caller.turn" && line.t_ms > question.t_ms;
    await wait(() => events.some(answered) || event("tool.finished"), 30000);
  } else if (plan.over) {
    await wait(() => performance.now() > question.page_ms + 900, 5000);
    say("yes");
    await wait(() => event("question.dropped"), 30000);
  } else {
    const settled = await wait(() => event("question.heard") || event("question.dropped"), 40000);
    await wait(() => performance.now() > settled.page_ms + 700, 5000);
    const heard = settled.event === "question.heard" ? settled : {};
    said.dropped = settled.reason;
    if (!plan.microphone && !said.dropped) {
      say("yes");
      await wait(() => event("tool.finished"), 30000);
    }
    // Where the last sound of the question was, and where the server thinks that it was.
    const end = loud.filter(([at]) => at < heard.earliest_ms + behind + 300).at(-1);
    said.measured = end?.[0];
    said.told = heard.earliest_ms + behind;
    said.latest = heard.latest_ms + behind;
    said.evidence = heard.evidence;
  }
  said.report = call.report;
  if (plan.keys) {
    call.press("12");
    await wait(() => events.filter((line) => line.event === "dtmf").length === 2, 15000);
  }
  await call.hangUp();
  return { ...said, events, states, ended: call.ended, output: context.outputLatency };
})
