/** Why a call could not be made. */
export class CallError extends Error {
  constructor(code: string, message: string, status?: number);
  /**
   * `microphone-denied`, `microphone-missing`, `insecure`, `unreachable`, `no-connection`, `bad-digits`, `no-keys`, or
   * the last part of the server's problem type: `no-token`, `no-such-agent`, `full`, `draining`, ...
   */
  readonly code: string;
  /** Of HTTP, where the server said no. */
  readonly status?: number;
}

export interface ConnectOptions {
  /** Of the server; default: where this page comes from. */
  url?: string;
  /** With the role `call`; none is needed on loopback. */
  token?: string;
  /** Who is called, by a name of `[agents]`; default: `*`. */
  agent?: string;
  /** STUN and TURN servers; default: none. */
  iceServers?: RTCIceServer[];
  /** Use TURN servers only. */
  relayOnly?: boolean;
  /** Sound of the caller's instead of the microphone; the call does not stop it. */
  stream?: MediaStream;
  /** Where the agent sounds; default: an element of the call's own. */
  audio?: HTMLMediaElement;
  /** Gives up while connecting, hangs up later. */
  signal?: AbortSignal;
}

export type CallState = "connecting" | "live" | "reconnecting" | "ended";

/** A line of the event log: see docs/events.md. */
export interface EventLine {
  t_ms: number;
  event: string;
  [field: string]: unknown;
}

export interface Ended {
  /** `hung-up`: here. `agent`: there. `lost`: the connection broke. `failed`: it never was. */
  reason: "hung-up" | "agent" | "lost" | "failed";
  detail: string;
}

/** What was told to the server about what was heard. Times are those of `performance.now()`, in milliseconds. */
export interface PlayoutReport {
  type: "played";
  at: number;
  rtp: number;
  heard: number;
  spread: number;
  output: number;
  microphone: number;
  concealed: number;
}

export interface CallEvents {
  state: CallState;
  event: EventLine;
  muted: boolean;
  ended: Ended;
}

export class Call extends EventTarget {
  private constructor();
  /** As `/v1/calls` has it. */
  readonly id: string | null;
  readonly state: CallState;
  readonly muted: boolean;
  /** The caller's sound. */
  readonly local: MediaStream | null;
  /** The agent's sound. */
  readonly remote: MediaStream | null;
  readonly report: PlayoutReport | null;
  readonly ended: Ended | null;
  /** Listens; gives a function that stops it. */
  on<Name extends keyof CallEvents>(name: Name, listener: (detail: CallEvents[Name]) => void): () => void;
  mute(muted?: boolean): void;
  /** Keys: `0`-`9`, `*`, `#`, `A`-`D`. */
  press(digits: string): void;
  /** The call is over at once; resolves when the server knows. */
  hangUp(): Promise<void>;
}

/** Calls an agent. Resolves once sound can flow both ways. */
export function connect(options?: ConnectOptions): Promise<Call>;
