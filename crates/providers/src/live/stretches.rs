//! Which stretch a word was said in: a vendor's clock on one side, stretches on the other.
//!
//! The vendor counts the sound that it was sent. Each stretch is a range of that count, and a word belongs to the
//! stretch in which its middle lies; a late word of an earlier stretch therefore never comes out with a later one.

use std::collections::VecDeque;

use sayback_runtime::stt::{LiveEvent, Transcription, Word};

use super::{Heard, RATE, Timed};

/// Old stretches that are remembered, so that their late words are known for what they are.
const REMEMBERED: usize = 64;
/// A word this far outside every stretch still belongs to the nearest: vendors round, and guess ends.
const SLACK: f64 = 3_200.0;
/// A vendor that has said everything up to this close to a flush has said everything.
const ROUNDING: u64 = 320;

/// The stretches of one connection.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    list: VecDeque<Stretch>,
    flushes: VecDeque<Flush>,
    /// Samples sent.
    sent: u64,
    /// Flushes sent, and how many the vendor has answered in order.
    asked: u64,
    ready: Vec<LiveEvent>,
    /// How far the vendor has said everything.
    upto: u64,
    answered: bool,
}

#[derive(Debug)]
struct Stretch {
    id: u32,
    from: u64,
    to: u64,
    words: Vec<Said>,
    wanted: bool,
}

#[derive(Debug)]
struct Said {
    text: String,
    /// Middle, on the vendor's clock.
    middle: f64,
    from: f64,
    to: f64,
    confidence: f32,
}

#[derive(Debug)]
struct Flush {
    number: u64,
    stretch: u32,
    at: u64,
    done: bool,
}

fn samples(seconds: f64) -> f64 {
    if seconds.is_finite() { (seconds * f64::from(RATE)).max(0.0) } else { 0.0 }
}

impl Stretches {
    /// Notes sound that is sent now; `false`: it belongs to a stretch that is over, and is not sent.
    pub(super) fn push(&mut self, id: u32, length: usize) -> bool {
        match self.list.back().map(|stretch| stretch.id) {
            Some(last) if last > id => return false,
            Some(last) if last == id => {}
            _ => {
                let (from, to) = (self.sent, self.sent);
                self.list.push_back(Stretch { id, from, to, words: Vec::new(), wanted: true });
                if self.list.len() > REMEMBERED {
                    self.list.pop_front();
                }
            }
        }
        self.sent += length as u64;
        if let Some(stretch) = self.list.back_mut() {
            stretch.to = self.sent;
        }
        true
    }

    /// Notes a flush; `false`: nothing of that stretch was ever sent, or nobody waits for it.
    pub(super) fn flush(&mut self, id: u32) -> bool {
        let Some(stretch) = self.list.iter().find(|stretch| stretch.id == id && stretch.wanted) else {
            return false;
        };
        self.flushes.push_back(Flush { number: self.asked, stretch: id, at: stretch.to, done: false });
        self.asked += 1;
        true
    }

    pub(super) fn forget(&mut self, id: u32) {
        if let Some(stretch) = self.list.iter_mut().find(|stretch| stretch.id == id) {
            stretch.wanted = false;
        }
    }

    /// Whether a flush that somebody still wants waits for its answer.
    pub(super) fn waits(&self) -> bool {
        self.flushes.iter().any(|flush| !flush.done && self.wanted(flush.stretch))
    }

    /// Whether a flush was answered since the last time that this was asked.
    pub(super) fn take_answered(&mut self) -> bool {
        std::mem::take(&mut self.answered)
    }

    /// What has become ready.
    pub(super) fn ready(&mut self) -> Vec<LiveEvent> {
        std::mem::take(&mut self.ready)
    }

    pub(super) fn take(&mut self, heard: Heard) {
        match heard {
            Heard::Partial { text, at } => self.on_partial(&text, at),
            Heard::Words(words) => words.into_iter().for_each(|word| self.on_word(word)),
            Heard::Text { text, at } => self.on_text(text, at),
            Heard::Upto(seconds) => {
                self.upto = self.upto.max(samples(seconds) as u64);
                self.settle_upto();
            }
            Heard::Flushed => {
                if let Some(flush) = self.flushes.iter_mut().find(|flush| !flush.done) {
                    flush.done = true;
                }
                self.settle();
            }
            Heard::Part { flush, text } => self.on_part(flush, text),
            Heard::PartSoFar { flush, text } => self.on_part_so_far(flush, &text),
        }
    }

    /// The vendor keeps silent about the little sound that came behind what it answered last: there was nothing.
    pub(super) fn give_up_rest(&mut self, most: u64) {
        let Some(flush) = self.flushes.iter_mut().find(|flush| !flush.done) else { return };
        let from = self.list.iter().find(|s| s.id == flush.stretch).map_or(0, |stretch| stretch.from);
        // Where it has answered nothing of this stretch it is slow, and that is another matter.
        if self.upto > from && flush.at.saturating_sub(self.upto) <= most {
            flush.done = true;
            self.settle();
        }
    }

    fn on_word(&mut self, word: Timed) {
        let (from, to) = (samples(word.from), samples(word.to));
        let said = Said { text: word.text, middle: (from + to) / 2.0, from, to, confidence: word.confidence };
        let is_old = self.list.front().is_none_or(|first| said.middle < first.from as f64);
        match self.at(said.middle) {
            // One that began well before the stretch in which its middle lies may be the earlier one's.
            Some(stretch) if said.from >= stretch.from as f64 - SLACK => stretch.say(said),
            _ if is_old => {}
            _ => self.ready.push(LiveEvent::Unplaced { text: said.text.trim().to_owned() }),
        }
    }

    fn on_text(&mut self, text: String, at: Option<(f64, f64)>) {
        if text.trim().is_empty() {
            return;
        }
        let (from, to) = at.map_or((0.0, f64::MAX), |(from, to)| (samples(from), samples(to)));
        let within = |s: &&Stretch| (s.from as f64) < to && (s.to as f64) > from;
        let mut touched = self.list.iter().filter(within).map(|stretch| stretch.id);
        match (touched.next(), touched.next()) {
            (Some(only), None) => {
                let (from, to) = at.unwrap_or_default();
                let text = format!(" {}", text.trim());
                self.add(only, Timed { text, from, to, confidence: 0.0 });
            }
            // It may be of an old stretch, or of several: that is for the core to judge.
            (Some(_), Some(_)) => self.ready.push(LiveEvent::Unplaced { text: text.trim().to_owned() }),
            (None, _) => {}
        }
    }

    fn add(&mut self, id: u32, word: Timed) {
        let Some(stretch) = self.list.iter_mut().find(|stretch| stretch.id == id) else { return };
        let inside = |at: f64| at.clamp(stretch.from as f64, stretch.to as f64);
        let (from, to) = (inside(samples(word.from)), inside(samples(word.to)));
        let middle = (from + to) / 2.0;
        stretch.say(Said { text: word.text, middle, from, to, confidence: word.confidence });
    }

    fn on_part(&mut self, number: u64, text: String) {
        let Some(at) = self.flushes.iter().position(|flush| flush.number == number) else { return };
        let (id, end) = (self.flushes[at].stretch, self.flushes[at].at);
        if !text.trim().is_empty() {
            let seconds = end.saturating_sub(1) as f64 / f64::from(RATE);
            let text = format!(" {}", text.trim());
            self.add(id, Timed { text, from: seconds, to: seconds, confidence: 0.0 });
        }
        self.flushes[at].done = true;
        self.upto = self.upto.max(end);
        self.settle();
    }

    fn on_part_so_far(&mut self, number: u64, text: &str) {
        let flush = self.flushes.iter().find(|flush| flush.number == number);
        let id = flush.map(|flush| flush.stretch).or_else(|| self.list.back().map(|stretch| stretch.id));
        if let Some(stretch) = id.and_then(|id| self.list.iter().find(|s| s.id == id && s.wanted)) {
            let text = format!("{} {}", stretch.text(), text.trim()).trim().to_owned();
            self.ready.push(LiveEvent::Partial { stretch: stretch.id, text });
        }
    }

    fn on_partial(&mut self, text: &str, at: Option<(f64, f64)>) {
        let middle = at.map_or(self.sent as f64, |(from, to)| (samples(from) + samples(to)) / 2.0);
        let Some(stretch) = self.at(middle).filter(|stretch| stretch.wanted) else { return };
        let text = format!("{} {}", stretch.text(), text.trim()).trim().to_owned();
        let stretch = stretch.id;
        if !text.is_empty() {
            self.ready.push(LiveEvent::Partial { stretch, text });
        }
    }

    /// The stretch in which this place lies, or which is next to it.
    fn at(&mut self, middle: f64) -> Option<&mut Stretch> {
        let away = |s: &Stretch| (s.from as f64 - middle).max(middle - s.to as f64).max(0.0);
        let nearest = self.list.iter_mut().min_by(|a, b| away(a).total_cmp(&away(b)))?;
        (away(nearest) <= SLACK).then_some(nearest)
    }

    fn settle_upto(&mut self) {
        let upto = self.upto.saturating_add(ROUNDING);
        for flush in self.flushes.iter_mut().filter(|flush| flush.at <= upto) {
            flush.done = true;
        }
        self.settle();
    }

    /// Gives what is complete: a flush is, when it and all earlier ones of its stretch are answered.
    fn settle(&mut self) {
        let mut at = 0;
        while at < self.flushes.len() {
            let flush = &self.flushes[at];
            let blocked = self.flushes.iter().take(at).any(|earlier| earlier.stretch == flush.stretch);
            if !flush.done || blocked {
                at += 1;
                continue;
            }
            let (id, end) = (flush.stretch, flush.at);
            self.flushes.remove(at);
            self.answered = true;
            if let Some(stretch) = self.list.iter().find(|stretch| stretch.id == id && stretch.wanted) {
                let upto = usize::try_from(end - stretch.from).unwrap_or(usize::MAX);
                self.ready.push(LiveEvent::Final { stretch: id, upto, found: stretch.found(end) });
            }
        }
    }

    fn wanted(&self, id: u32) -> bool {
        self.list.iter().any(|stretch| stretch.id == id && stretch.wanted)
    }
}

impl Stretch {
    /// Takes a word to its place: answers may come in any order.
    fn say(&mut self, said: Said) {
        let at = self.words.partition_point(|word| word.middle <= said.middle);
        self.words.insert(at, said);
    }

    fn text(&self) -> String {
        self.words.iter().map(|word| word.text.as_str()).collect::<String>().trim().to_owned()
    }

    /// Its words up to a place of the vendor's clock. Words that begin behind it come with a later flush.
    fn found(&self, end: u64) -> Transcription {
        let words: Vec<&Said> = self.words.iter().filter(|word| word.middle < end as f64 + SLACK).collect();
        let text = words.iter().map(|word| word.text.as_str()).collect::<String>().trim().to_owned();
        let place = |at: f64| ((at - self.from as f64) / f64::from(RATE)).max(0.0) as f32;
        let sure: Vec<f32> = words.iter().map(|w| w.confidence).filter(|c| *c > 0.0).collect();
        let mean = sure.iter().map(|c| c.ln()).sum::<f32>() / sure.len().max(1) as f32;
        let of = |w: &&Said| Word { text: w.text.trim().to_owned(), from: place(w.from), to: place(w.to) };
        Transcription {
            text,
            words: words.iter().map(of).filter(|word| !word.text.is_empty()).collect(),
            // A certainty of exactly 1 would read as unknown.
            avg_logprob: if sure.is_empty() { 0.0 } else { mean.min(-1e-4) },
            no_speech: 0.0,
            phantom: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second() -> usize {
        RATE as usize
    }

    fn word(text: &str, from: f64, to: f64) -> Heard {
        Heard::Words(vec![Timed { text: format!(" {text}"), from, to, confidence: 0.5 }])
    }

    fn finals(stretches: &mut Stretches) -> Vec<(u32, String)> {
        let of = |event: LiveEvent| match event {
            LiveEvent::Final { stretch, found, .. } => Some((stretch, found.text)),
            LiveEvent::Unplaced { text } => Some((u32::MAX, text)),
            LiveEvent::Partial { .. } | LiveEvent::Failed { .. } => None,
        };
        stretches.ready().into_iter().filter_map(of).collect()
    }

    /// Two stretches of a second each, both flushed.
    fn two() -> Stretches {
        let mut stretches = Stretches::default();
        for id in [1, 2] {
            assert!(stretches.push(id, second()) && stretches.flush(id));
        }
        stretches
    }

    #[test]
    fn a_word_belongs_to_the_stretch_in_which_its_middle_lies() {
        let mut stretches = two();
        stretches.take(word("no", 0.4, 0.6));
        stretches.take(word("yes", 1.4, 1.6));
        stretches.take(Heard::Upto(2.0));
        assert_eq!(finals(&mut stretches), [(1, "no".to_owned()), (2, "yes".to_owned())]);
    }

    #[test]
    fn a_word_that_began_well_before_its_stretch_is_placed_nowhere() {
        let mut stretches = two();
        stretches.take(word("yes", 0.5, 1.9));
        assert_eq!(finals(&mut stretches), [(u32::MAX, "yes".to_owned())]);
    }

    #[test]
    fn text_over_two_stretches_is_placed_nowhere_and_over_one_in_it() {
        let mut stretches = two();
        stretches.take(Heard::Text { text: "yes".to_owned(), at: Some((0.5, 1.5)) });
        stretches.take(Heard::Text { text: "no".to_owned(), at: None });
        assert_eq!(finals(&mut stretches).len(), 2);
        stretches.take(Heard::Text { text: "yes".to_owned(), at: Some((1.2, 1.5)) });
        stretches.take(Heard::Upto(2.0));
        assert_eq!(finals(&mut stretches), [(1, String::new()), (2, "yes".to_owned())]);
    }

    #[test]
    fn what_the_vendor_has_not_reached_is_not_final() {
        let mut stretches = two();
        stretches.take(word("no", 0.4, 0.6));
        stretches.take(Heard::Upto(0.9));
        assert_eq!(finals(&mut stretches), []);
        assert!(stretches.waits());
    }

    #[test]
    fn parts_may_come_in_any_order_and_are_joined_in_theirs() {
        let mut stretches = Stretches::default();
        for _ in 0..2 {
            assert!(stretches.push(5, second()) && stretches.flush(5));
        }
        stretches.take(Heard::Part { flush: 1, text: "but not today".to_owned() });
        assert_eq!(finals(&mut stretches), [], "the part before it is not there");
        stretches.take(Heard::Part { flush: 0, text: "yes".to_owned() });
        let found: Vec<String> = finals(&mut stretches).into_iter().map(|(_, text)| text).collect();
        assert_eq!(found.last().map(String::as_str), Some("yes but not today"));
    }

    #[test]
    fn a_vendor_that_answered_nothing_of_a_stretch_is_slow_and_not_silent() {
        let mut stretches = two();
        stretches.give_up_rest(4_000);
        assert_eq!(finals(&mut stretches), []);
        stretches.take(word("no", 0.4, 0.6));
        stretches.take(Heard::Upto(0.9));
        stretches.give_up_rest(4_000);
        assert_eq!(finals(&mut stretches), [(1, "no".to_owned())]);
    }

    #[test]
    fn sound_of_a_stretch_that_is_over_is_not_sent() {
        let mut stretches = two();
        assert!(!stretches.push(1, 100));
        assert!(!stretches.flush(9), "nothing of it was ever sent");
        stretches.forget(2);
        assert!(!stretches.flush(2));
    }

    #[test]
    fn no_number_breaks_it() {
        let mut stretches = two();
        for at in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300] {
            stretches.take(word("x", at, at));
            stretches.take(Heard::Text { text: "x".to_owned(), at: Some((at, at)) });
            stretches.take(Heard::Partial { text: "x".to_owned(), at: Some((at, at)) });
        }
        stretches.take(Heard::Part { flush: u64::MAX, text: "x".to_owned() });
        stretches.take(Heard::Upto(f64::NAN));
        assert!(stretches.waits());
    }
}
