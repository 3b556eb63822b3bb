// Put into a page before anything else: a microphone that says recordings when it is told to. In front of it
// comes `const CLIPS = { name: base64 of a WAV };`.
(() => {
  let context = null;
  let mouth = null;
  navigator.mediaDevices.getUserMedia = async () => {
    context = new AudioContext();
    await context.resume();
    mouth = context.createMediaStreamDestination();
    // Silence, so that the caller's sound flows from the beginning.
    const silence = context.createConstantSource();
    silence.offset.value = 0;
    silence.connect(mouth);
    silence.start();
    return mouth.stream;
  };
  window.caller = {
    async say(name) {
      const bytes = Uint8Array.from(atob(CLIPS[name]), (letter) => letter.charCodeAt(0));
      const source = new AudioBufferSourceNode(context, { buffer: await context.decodeAudioData(bytes.buffer) });
      source.connect(mouth);
      source.start();
    },
  };
})();
