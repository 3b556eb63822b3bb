//! The question's life: held, asking, heard, answered, checked, run or dropped.

use std::fmt::Write as _;

use super::labels::Rows;
use super::{AGENT, Answer, CALLER, Canvas, QUESTION, Question, TOOLS, escaped, span};
use crate::report::decision::decision;

impl Canvas<'_> {
    pub(super) fn questions(&mut self) {
        let timeline = self.timeline;
        let mut rows = Rows::new(QUESTION.rows);
        for question in &timeline.questions {
            let close = self.closed_at(question);
            self.phases(question, close);
            for answer in &question.answers {
                self.answer(question, answer);
            }
            self.phase_labels(question, &mut rows);
            self.ending(question, close, &mut rows);
            self.horizons(question);
        }
    }

    /// When the question was no longer open: its run or its drop.
    fn closed_at(&self, question: &Question) -> f64 {
        let run = question.run.and_then(|run| self.timeline.tools.get(run)).map(|run| run.started);
        run.or(question.dropped.as_ref().map(|(at, _)| *at)).unwrap_or(self.end)
    }

    fn phases(&mut self, question: &Question, close: f64) {
        let place = (QUESTION.top, QUESTION.height);
        let first = question.askings.first().map_or(close, |asking| asking.started);
        self.block(
            "phase held",
            (question.held, first),
            place,
            "held: the tool waits, nothing has been asked",
        );
        for (index, asking) in question.askings.iter().enumerate() {
            let next = question.askings.get(index + 1).map_or(close, |next| next.started);
            let heard = asking.heard.as_ref();
            let until = heard.map_or(next, |heard| heard.latest).min(next.max(asking.started));
            self.block("phase asking", (asking.started, until), place, "asking: no answer counts yet");
            if let Some(heard) = heard {
                self.block(
                    "unsure",
                    (heard.earliest.min(until), until),
                    place,
                    "may have been heard from here",
                );
                if next > heard.latest {
                    self.block(
                        "phase open",
                        (heard.latest, next),
                        place,
                        "open: what begins now is an answer",
                    );
                }
            }
        }
    }

    fn answer(&mut self, question: &Question, answer: &Answer) {
        let hint = format!("“{}”, checked: {}", answer.words, answer.verdict);
        let inset = (QUESTION.top + 5.0, QUESTION.height - 10.0);
        let class = match answer.verdict.as_str() {
            "yes" => "phase yes",
            "no" => "phase no",
            _ => "phase unclear",
        };
        self.block(class, (answer.onset, answer.at), inset, &hint);
        let before = |heard: &&super::super::timeline::Horizon| heard.latest <= answer.onset + 1.0;
        let horizon = question.askings.iter().rev().filter_map(|asking| asking.heard.as_ref()).find(before);
        if let Some(horizon) = horizon {
            self.margin(horizon.latest, answer.onset, answer.margin);
        }
    }

    /// The distance from the horizon to the answer, as on a technical drawing.
    fn margin(&mut self, from: f64, to: f64, margin: f64) {
        let (x, end, y) = (self.x(from), self.x(to), QUESTION.top - 8.0);
        self.line("measure", (x, y), (end, y));
        self.line("measure", (end, y - 4.0), (end, QUESTION.top + 5.0));
        self.text("measure-text", end + 5.0, y + 3.0, &format!("+{}", span(margin)));
    }

    fn phase_labels(&mut self, question: &Question, rows: &mut Rows) {
        let mut labels = vec![(question.held, "held".to_owned(), "label dim")];
        for (index, asking) in question.askings.iter().enumerate() {
            let name = if index == 0 { "asking" } else { "asking again" };
            labels.push((asking.started, name.to_owned(), "label"));
            if asking.heard.is_some() && question.answers.is_empty() && question.dropped.is_none() {
                labels.push((
                    asking.heard.as_ref().map_or(0.0, |heard| heard.latest),
                    "open".into(),
                    "label",
                ));
            }
        }
        for answer in &question.answers {
            let note = answer.veto.as_ref().or(answer.error.as_ref()).map(|why| format!(" ({why})"));
            labels.push((
                answer.onset,
                format!("“{}” {}{}", answer.words, answer.verdict, note.unwrap_or_default()),
                "label",
            ));
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, text, class) in labels {
            self.label(rows, &QUESTION, class, at, &text);
        }
    }

    fn ending(&mut self, question: &Question, close: f64, rows: &mut Rows) {
        let (ending, sentence) = decision(self.timeline, question);
        let (x, y) = (self.x(close), QUESTION.top + QUESTION.height / 2.0);
        let class = ending.class();
        let Some(mark) = (match (&question.dropped, question.run) {
            (_, Some(_)) => Some("✓"),
            (Some(_), None) => Some("✗"),
            (None, None) => None,
        }) else {
            return;
        };
        let _ = write!(
            self.words,
            "<g class=\"end {class}\"><title>{}</title><circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"11\"/><text x=\"{x:.1}\" \
             y=\"{:.1}\">{mark}</text></g>",
            escaped(&sentence),
            y + 5.0
        );
        if question.run.is_some() {
            self.line("runs", (x, y + 11.0), (x, TOOLS.top));
        }
        let reason = question.dropped.as_ref().filter(|_| question.run.is_none());
        if let Some((at, reason)) = reason {
            self.label(rows, &QUESTION, "label bad-text", *at, &format!("dropped: {reason}"));
        }
    }

    /// A line through both voices where the question had been heard: only what begins to its right answers.
    fn horizons(&mut self, question: &Question) {
        for horizon in question.askings.iter().filter_map(|asking| asking.heard.as_ref()) {
            let x = self.x(horizon.latest);
            self.line("horizon", (x, CALLER.top - 6.0), (x, QUESTION.top + QUESTION.height));
            let _ = write!(
                self.words,
                "<g class=\"flag\"><title>The question had been heard by {:.0} ms (known by: {})</title><rect \
                 x=\"{:.1}\" y=\"{:.1}\" width=\"46\" height=\"16\" rx=\"3\"/><text x=\"{:.1}\" y=\"{:.1}\">heard</text></g>",
                horizon.latest,
                escaped(&horizon.evidence),
                x - 23.0,
                AGENT.top - 16.0,
                x,
                AGENT.top - 4.0
            );
        }
    }
}
