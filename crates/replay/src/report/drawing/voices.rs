//! The lanes of the two voices: sound, spans and words.

use std::fmt::Write as _;

use super::labels::Rows;
use super::{
    AGENT, BOLD_LETTER, CALLER, Canvas, LETTER, Lane, SAMPLES_PER_MS, Timeline, Utterance, escaped,
    shortened, span,
};

/// Pixels per column of a wave.
const COLUMN: f64 = 1.5;

/// How a stretch of caller sound stands to a question.
fn caller_class(timeline: &Timeline, earliest: f64, offset: f64) -> &'static str {
    let (onset, close) = (earliest, |a: f64| (earliest - 1.0..=offset).contains(&a));
    let answers = timeline.questions.iter().any(|q| q.answers.iter().any(|answer| close(answer.onset)));
    let over = timeline.questions.iter().any(|question| {
        let dropped = question.dropped.as_ref().filter(|(_, reason)| reason == "barge_in");
        let last = question.askings.last();
        let limit = last.and_then(|asking| asking.heard.as_ref()).map(|heard| heard.latest);
        dropped
            .zip(last)
            .is_some_and(|((at, _), asking)| offset > asking.started && onset < limit.unwrap_or(*at))
    });
    match (over, answers) {
        (true, _) => "caller over",
        (false, true) => "caller answer",
        (false, false) => "caller",
    }
}

impl Canvas<'_> {
    pub(super) fn caller(&mut self, samples: Option<&[i16]>) {
        let timeline = self.timeline;
        let middle = CALLER.top + CALLER.height / 2.0;
        self.line("rest", (0.0, middle), (self.x(self.end), middle));
        for speech in &timeline.speech {
            let hint = format!("speech from {} to {}", span(speech.onset), span(speech.offset));
            let place = bar(&CALLER, samples.is_some());
            if speech.earliest < speech.onset {
                self.block("unsure", (speech.earliest, speech.onset), place, "may have begun here");
            }
            let class = caller_class(timeline, speech.earliest, speech.offset);
            self.block(class, (speech.onset, speech.offset), place, &hint);
        }
        if timeline.speech.is_empty() {
            for words in &timeline.words {
                let class = caller_class(timeline, words.onset, words.offset);
                self.block(class, (words.onset, words.offset), bar(&CALLER, samples.is_some()), &words.text);
            }
        }
        self.wave("wave caller-wave", samples, &CALLER);
        let mut rows = Rows::new(CALLER.rows);
        for words in &timeline.words {
            let class = if words.ignored.is_some() { "label ignored" } else { "label strong" };
            self.label(&mut rows, &CALLER, class, words.onset, &words.text);
        }
        for (at, digit) in &timeline.keys {
            self.label(&mut rows, &CALLER, "label strong", *at, &format!("⌨ {digit}"));
        }
    }

    pub(super) fn agent(&mut self, samples: Option<&[i16]>) {
        let timeline = self.timeline;
        let middle = AGENT.top + AGENT.height / 2.0;
        self.line("rest", (0.0, middle), (self.x(self.end), middle));
        let mut rows = Rows::new(AGENT.rows);
        let mut starts = timeline.utterances.iter().filter_map(|u| u.started).collect::<Vec<_>>();
        starts.sort_by(f64::total_cmp);
        for utterance in &timeline.utterances {
            self.utterance(utterance, samples.is_some());
            let from = utterance.started.unwrap_or(utterance.said);
            let next = starts.iter().copied().find(|start| *start > from + 1.0).unwrap_or(self.end);
            let room = (next.max(utterance.until(self.end)) - from) * self.scale;
            self.agent_words(&mut rows, utterance, (room * 1.5 / LETTER) as usize);
        }
        for (from, to) in &timeline.pauses {
            self.block("paused", (*from, to.unwrap_or(*from)), bar(&AGENT, samples.is_some()), "paused");
        }
        self.wave("wave agent-wave", samples, &AGENT);
    }

    fn utterance(&mut self, utterance: &Utterance, wave: bool) {
        let foot = AGENT.top + AGENT.height - 2.0;
        let place = bar(&AGENT, wave);
        let kind = if utterance.question { "question" } else { "agent" };
        let Some(started) = utterance.started else {
            let to = utterance.heard.as_ref().map_or(utterance.said, |heard| heard.latest);
            self.line("queued", (self.x(utterance.said), foot), (self.x(to) + 12.0, foot));
            return;
        };
        self.line("queued", (self.x(utterance.said), foot), (self.x(started), foot));
        let Some(heard) = &utterance.heard else {
            self.block(&format!("{kind} faint"), (started, self.end), place, &utterance.text);
            return;
        };
        let sure = heard.earliest.max(started);
        let hint = format!("heard: {}", heard.text);
        self.block(kind, (started, sure), place, &hint);
        if heard.latest > sure {
            let hint =
                format!("heard to its end between {} and {}", span(heard.earliest), span(heard.latest));
            self.block("unsure", (sure, heard.latest), place, &hint);
        }
        if !heard.complete {
            let x = self.x(heard.latest);
            self.line("cut", (x, AGENT.top), (x, AGENT.top + AGENT.height));
        }
    }

    /// What was heard, and behind it, struck out, what was not.
    fn agent_words(&mut self, rows: &mut Rows, utterance: &Utterance, room: usize) {
        let (heard, rest) = utterance.heard_and_rest();
        let limit = room.clamp(14, 160);
        let heard = shortened(heard, limit);
        let rest = shortened(rest, limit.saturating_sub(heard.chars().count()).max(8));
        let letter = if utterance.question { BOLD_LETTER } else { LETTER };
        let width = (heard.chars().count() + rest.chars().count()) as f64 * letter + 10.0;
        let at = self.x(utterance.started.unwrap_or(utterance.said));
        let Some((row, x)) = rows.place(at, width) else { return };
        let class = if utterance.question { "label ask" } else { "label" };
        let _ = write!(
            self.words,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\">{}<tspan class=\"unheard\">{}</tspan></text>",
            AGENT.label_y(row),
            escaped(&heard),
            escaped(&rest)
        );
    }

    /// The outline of the sound: least and greatest sample of each column, scaled to the loudest.
    fn wave(&mut self, class: &str, samples: Option<&[i16]>, lane: &Lane) {
        let Some(samples) = samples.filter(|samples| !samples.is_empty()) else { return };
        let peak = samples.iter().map(|sample| f64::from(sample.unsigned_abs())).fold(1_000.0, f64::max);
        let per_column = (COLUMN / self.scale * SAMPLES_PER_MS).max(1.0) as usize;
        let (middle, half) = (lane.top + lane.height / 2.0, lane.height / 2.0 - 2.0);
        let _ = write!(self.shapes, "<path class=\"{class}\" d=\"");
        for (index, column) in samples.chunks(per_column).enumerate() {
            let x = (index * per_column) as f64 / SAMPLES_PER_MS * self.scale;
            let high = column.iter().copied().max().map_or(0.0, f64::from) / peak * half;
            let low = column.iter().copied().min().map_or(0.0, f64::from) / peak * half;
            if high - low >= 0.6 {
                let _ = write!(self.shapes, "M{x:.1} {:.1}V{:.1}", middle - high, middle - low);
            }
        }
        self.shapes.push_str("\"/>");
    }
}

/// Where a span lies: behind the wave if there is one, else a bar in the middle.
fn bar(lane: &Lane, wave: bool) -> (f64, f64) {
    if wave { (lane.top, lane.height) } else { (lane.top + 12.0, lane.height - 24.0) }
}
