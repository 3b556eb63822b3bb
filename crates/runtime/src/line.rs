//! What a call's line does for the core: sound or text out, and words in.

use sayback_core::{CallId, Interval, SegmentId, Session, Speak, Time};
use serde_json::Value;

use crate::ears::Listener;

/// A line, as the driver needs it. Nothing in here waits; answers come back as events.
pub trait Line: Send {
    /// Says this after what is already queued.
    fn speak(&mut self, speak: Speak);
    /// Falls silent at once, keeping the queue.
    fn pause(&mut self) {}
    /// Goes on.
    fn resume(&mut self) {}
    /// Throws everything away that has not sounded, and reports how much had.
    fn clear(&mut self) {}
    /// A segment of caller sound began: recognise it.
    fn open_segment(&mut self, _segment: SegmentId, _onset: Interval) {}
    /// It is over: its final words are wanted.
    fn close_segment(&mut self, _segment: SegmentId, _offset: Time) {}
    /// Asks the end-of-turn model about the sound up to the end of this segment.
    fn judge_end(&mut self, _segment: SegmentId) {}
    /// Takes the ears that listen to this line, for lines with sound.
    fn listen(&mut self, _listener: Listener) {}
    /// The call ends from our side.
    fn end(&mut self) {}
    /// Where callers may be handed over to, by the names that the model is told. None: the model is not offered it.
    fn transfers(&self) -> Vec<String> {
        Vec::new()
    }
    /// Hands the caller to somebody else, by the arguments of the tool's call; whoever takes over should know of the
    /// question that was `dropped` for it. False: this line cannot. Otherwise the line says with `ToolFinished` what came
    /// of it.
    fn transfer(&mut self, _call: &CallId, _input: &str, _dropped: Option<&str>) -> bool {
        false
    }
    /// A line of the event log, for lines that show it.
    fn on_event(&mut self, _line: &Value) {}
    /// The session changed.
    fn on_state(&mut self, _session: &Session) {}
    /// Nothing more comes.
    fn close(&mut self) {}
}
