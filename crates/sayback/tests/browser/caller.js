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
  if (plan.outage) {
    await plan.outage(call);
  } else if (plan.over) {
    await wait(() => performance.now() > question.page_ms + 900, 5000);
    say("yes");
    await wait(() => event("question.dropped"), 30000);
  } else {
    const heard = await wait(() => event("question.heard"), 30000);
    await wait(() => performance.now() > heard.page_ms + 700, 5000);
    if (!plan.microphone) {
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
