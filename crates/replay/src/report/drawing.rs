//! The call as an SVG: one time axis, a lane for each side, and the question's life between them.

use std::fmt::Write as _;

use super::decision::span;
use super::escape::{escaped, shortened};
use super::timeline::{Answer, Question, Timeline, Utterance};

mod axis;
mod labels;
mod question;
mod voices;

use labels::Rows;

/// Pixels per ms at the usual scale: speech takes nearly as much room as its letters.
const SCALE: f64 = 0.085;
const NARROWEST: f64 = 860.0;
const WIDEST: f64 = 16_000.0;
/// Silence drawn behind the last event.
const TAIL_MS: f64 = 600.0;
/// Width of a letter at the size that labels are set in.
const LETTER: f64 = 6.7;
/// The same of a question, which is bold.
const BOLD_LETTER: f64 = 7.4;
const ROW: f64 = 17.0;

/// Samples per ms of what is drawn as a wave.
const SAMPLES_PER_MS: f64 = 16.0;

/// The sound of a call, if there is any, at 16 kHz from the beginning of the call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waves<'a> {
    pub(super) caller: Option<&'a [i16]>,
    pub(super) agent: Option<&'a [i16]>,
}

/// A finished drawing.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) svg: String,
    /// Name, top and height of each lane.
    pub(super) lanes: Vec<(&'static str, f64, f64)>,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The time at its right edge.
    pub(super) end_ms: f64,
}

/// Where the lanes lie.
struct Lane {
    top: f64,
    /// Of the wave or track; labels come below it.
    height: f64,
    rows: usize,
}

impl Lane {
    const fn label_y(&self, row: usize) -> f64 {
        self.top + self.height + 14.0 + row as f64 * ROW
    }

    const fn bottom(&self) -> f64 {
        self.top + self.height + 4.0 + self.rows as f64 * ROW
    }
}

const CALLER: Lane = Lane { top: 40.0, height: 56.0, rows: 2 };
const AGENT: Lane = Lane { top: CALLER.bottom() + 14.0, height: 56.0, rows: 2 };
const QUESTION: Lane = Lane { top: AGENT.bottom() + 32.0, height: 30.0, rows: 2 };
const TOOLS: Lane = Lane { top: QUESTION.bottom() + 14.0, height: 22.0, rows: 1 };
const TOLD: Lane = Lane { top: TOOLS.bottom() + 14.0, height: 14.0, rows: 2 };
const HEIGHT: f64 = TOLD.bottom() + 8.0;

/// The drawing under way.
struct Canvas<'a> {
    timeline: &'a Timeline,
    /// Lines and boxes; drawn a second time, small, as an overview.
    shapes: String,
    /// Texts and marks, which only the large drawing has.
    words: String,
    scale: f64,
    end: f64,
}

/// Draws the call.
pub(super) fn drawing(timeline: &Timeline, waves: Waves<'_>) -> Drawing {
    let sound = [waves.caller, waves.agent].into_iter().flatten().map(|samples| samples.len() as f64);
    let sound_ms = sound.fold(0.0, f64::max) / SAMPLES_PER_MS;
    let end = timeline.end.max(sound_ms) + TAIL_MS;
    let width = (end * SCALE).clamp(NARROWEST, WIDEST);
    let mut canvas =
        Canvas { timeline, shapes: String::new(), words: String::new(), scale: width / end, end };
    canvas.axis(width);
    canvas.caller(waves.caller);
    canvas.agent(waves.agent);
    canvas.questions();
    canvas.tools();
    canvas.told();
    let lanes = [
        ("Caller", &CALLER),
        ("Agent", &AGENT),
        ("Question", &QUESTION),
        ("Tools", &TOOLS),
        ("Model told", &TOLD),
    ];
    Drawing {
        svg: canvas.finished(width),
        lanes: lanes.into_iter().map(|(name, lane)| (name, lane.top, lane.height)).collect(),
        width,
        height: HEIGHT,
        end_ms: end,
    }
}

const PATTERNS: &str = "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
    patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs>";

impl Canvas<'_> {
    fn finished(self, width: f64) -> String {
        format!(
            "<svg id=\"call\" class=\"call\" viewBox=\"0 0 {width:.0} {HEIGHT:.0}\" width=\"{width:.0}\" \
             height=\"{HEIGHT:.0}\" role=\"img\" aria-label=\"Timeline of the call; the table below says the same in \
             words\">{PATTERNS}<g id=\"shapes\">{}</g>{}<line id=\"head\" class=\"head\" x1=\"-9\" x2=\"-9\" y1=\"0\" \
             y2=\"100%\"/></svg>",
            self.shapes, self.words
        )
    }

    fn x(&self, ms: f64) -> f64 {
        ms.max(0.0) * self.scale
    }

    /// A box from one time to another; `hint` is shown when pointed at.
    fn block(&mut self, class: &str, times: (f64, f64), place: (f64, f64), hint: &str) {
        let (x, to) = (self.x(times.0), self.x(times.1));
        let width = (to - x).max(2.0);
        let (y, height) = place;
        let _ = write!(
            self.shapes,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"3\">\
             <title>{}</title></rect>",
            escaped(hint)
        );
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.shapes,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let _ =
            write!(self.words, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text));
    }

    fn tools(&mut self) {
        let timeline = self.timeline;
        let mut rows = Rows::new(TOOLS.rows);
        for run in &timeline.tools {
            let (to, ok) = run.finished.as_ref().map_or((self.end, false), |end| (end.at, end.ok));
            let class = if ok { "tool good" } else { "tool bad" };
            let message = run.finished.as_ref().map_or("no result", |end| end.message.as_str());
            let hint = format!("{} {} → {message}", run.tool, run.input);
            self.block(class, (run.started, to), (TOOLS.top, TOOLS.height), &hint);
            let mark = if ok { "✓" } else { "✗" };
            self.label(
                &mut rows,
                &TOOLS,
                "label",
                run.started,
                &format!("{mark} {} {}", run.tool, run.input),
            );
        }
    }

    fn told(&mut self) {
        let timeline = self.timeline;
        let mut rows = Rows::new(TOLD.rows);
        for (at, text) in &timeline.told {
            let (x, y) = (self.x(*at), TOLD.top + 7.0);
            let _ = write!(
                self.words,
                "<circle class=\"told\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{}</title></circle>",
                escaped(text)
            );
            self.label(&mut rows, &TOLD, "label dim", *at, text);
        }
    }

    /// A label below a lane, in the first row that has room, moved a little if none has.
    fn label(&mut self, rows: &mut Rows, lane: &Lane, class: &str, at: f64, text: &str) {
        let text = shortened(text, 90);
        let width = text.chars().count() as f64 * LETTER + 10.0;
        if let Some((row, x)) = rows.place(self.x(at), width) {
            self.text(class, x, lane.label_y(row), &text);
        }
    }
}
