//! What happened in a call, gathered from its event log: who spoke when, what was asked, and what came of it.
//!
//! The log is read leniently. It may come from an older version or be cut off; what is missing is not drawn.

use serde_json::Value;

/// A call as it is drawn. All times are in ms on the call clock.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) end: f64,
    pub(super) transport: String,
    pub(super) speech: Vec<CallerSpeech>,
    pub(super) words: Vec<CallerWords>,
    pub(super) keys: Vec<(f64, String)>,
    pub(super) utterances: Vec<Utterance>,
    pub(super) pauses: Vec<(f64, Option<f64>)>,
    pub(super) questions: Vec<Question>,
    pub(super) tools: Vec<ToolRun>,
    pub(super) told: Vec<(f64, String)>,
    pub(super) followups: Vec<f64>,
    pub(super) ended: Option<(f64, String)>,
}

/// A stretch of caller sound.
#[derive(Debug)]
pub(super) struct CallerSpeech {
    pub(super) earliest: f64,
    pub(super) onset: f64,
    pub(super) offset: f64,
}

/// Final words of the caller.
#[derive(Debug)]
pub(super) struct CallerWords {
    pub(super) onset: f64,
    pub(super) offset: f64,
    pub(super) text: String,
    pub(super) ignored: Option<String>,
}

/// A piece of agent speech.
#[derive(Debug)]
pub(super) struct Utterance {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) said: f64,
    pub(super) started: Option<f64>,
    pub(super) heard: Option<Heard>,
    pub(super) question: bool,
}

/// How much of a piece was heard.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) text: String,
    pub(super) complete: bool,
    pub(super) earliest: f64,
    pub(super) latest: f64,
}

/// A question from held to its end.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) text: String,
    pub(super) held: f64,
    pub(super) askings: Vec<Asking>,
    pub(super) answers: Vec<Answer>,
    pub(super) dropped: Option<(f64, String)>,
    /// Index of the run that its yes led to.
    pub(super) run: Option<usize>,
}

/// One asking.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) started: f64,
    pub(super) heard: Option<Horizon>,
}

/// When an asking had been heard.
#[derive(Clone, Debug)]
pub(super) struct Horizon {
    pub(super) earliest: f64,
    pub(super) latest: f64,
    pub(super) evidence: String,
}

/// One checked answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) at: f64,
    pub(super) words: String,
    pub(super) onset: f64,
    pub(super) margin: f64,
    pub(super) verdict: String,
    pub(super) veto: Option<String>,
    pub(super) error: Option<String>,
}

/// One run of a tool.
#[derive(Debug)]
pub(super) struct ToolRun {
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) input: String,
    pub(super) started: f64,
    pub(super) confirmed_by: Option<String>,
    pub(super) finished: Option<ToolEnd>,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct ToolEnd {
    pub(super) at: f64,
    pub(super) ok: bool,
    pub(super) message: String,
}

/// One event's fields, read leniently.
#[derive(Clone, Copy)]
pub(super) struct Row<'a>(pub(super) &'a Value);

impl<'a> Row<'a> {
    pub(super) fn name(self) -> &'a str {
        self.0.get("event").and_then(Value::as_str).unwrap_or("?")
    }

    /// Not finite or far away: a page cannot draw it.
    fn time(self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64().filter(|ms| (-1e7..=1e9).contains(ms))
    }

    pub(super) fn at(self) -> f64 {
        self.time("t_ms").unwrap_or(0.0)
    }

    fn time_or_at(self, key: &str) -> f64 {
        self.time(key).unwrap_or_else(|| self.at())
    }

    /// The text of a string, or the JSON of anything else.
    fn text(self, key: &str) -> String {
        self.maybe(key).unwrap_or_default()
    }

    fn maybe(self, key: &str) -> Option<String> {
        match self.0.get(key)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Some(other.to_string())
            }
        }
    }

    fn flag(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }
}

impl Timeline {
    pub(super) fn gather(events: &[Value]) -> Self {
        let mut timeline = Self::default();
        for event in events {
            let row = Row(event);
            timeline.end = timeline.end.max(row.at());
            timeline.note(row);
        }
        timeline.mark_questions();
        timeline
    }

    fn note(&mut self, row: Row<'_>) {
        match row.name() {
            "call.started" => self.transport = row.text("transport"),
            "call.ended" => self.ended = Some((row.at(), row.text("reason"))),
            "dtmf" => self.keys.push((row.at(), row.text("digit"))),
            "model.told" => self.told.push((row.at(), row.text("text"))),
            "silence.followup" => self.followups.push(row.at()),
            name if name.starts_with("caller.") => self.note_caller(row),
            name if name.starts_with("agent.") => self.note_agent(row),
            name if name.starts_with("tool.") => self.note_tool(row),
            name if name.starts_with("question.") || name == "answer.checked" => self.note_question(row),
            _ => {}
        }
    }

    fn note_caller(&mut self, row: Row<'_>) {
        let onset = row.time_or_at("onset_ms");
        let offset = row.time_or_at("offset_ms").max(onset);
        match row.name() {
            "caller.speech" => {
                let earliest = row.time("onset_earliest_ms").unwrap_or(onset).min(onset);
                self.speech.push(CallerSpeech { earliest, onset, offset });
            }
            "caller.words" if row.flag("final") => {
                let ignored = row.maybe("ignored");
                self.words.push(CallerWords { onset, offset, text: row.text("text"), ignored });
            }
            _ => return,
        }
        self.end = self.end.max(offset);
    }

    fn note_agent(&mut self, row: Row<'_>) {
        let id = row.text("utterance");
        match row.name() {
            "agent.said" => self.utterances.push(Utterance {
                id,
                text: row.text("text"),
                said: row.at(),
                started: None,
                heard: None,
                question: false,
            }),
            "agent.paused" => self.pauses.push((row.at(), None)),
            "agent.resumed" => {
                if let Some(last) = self.pauses.last_mut() {
                    last.1 = last.1.or(Some(row.at()));
                }
            }
            name => {
                let latest = row.time_or_at("latest_ms");
                self.end = self.end.max(latest);
                let Some(utterance) = self.utterances.iter_mut().rev().find(|u| u.id == id) else { return };
                if name == "agent.started" {
                    utterance.started = Some(row.at());
                } else {
                    let earliest = row.time("earliest_ms").unwrap_or(latest).min(latest);
                    let complete = row.flag("complete");
                    utterance.heard = Some(Heard { text: row.text("text"), complete, earliest, latest });
                }
            }
        }
    }

    fn note_tool(&mut self, row: Row<'_>) {
        let call = row.text("call_id");
        match row.name() {
            "tool.started" => {
                let confirmed_by = row.maybe("confirmed_by");
                let tool = row.text("tool");
                if confirmed_by.is_some() {
                    let run = self.tools.len();
                    let open = |q: &&mut Question| q.run.is_none() && q.dropped.is_none() && q.tool == tool;
                    if let Some(question) = self.questions.iter_mut().rev().find(open) {
                        question.run = Some(run);
                    }
                }
                let input = row.text("input");
                let started = row.at();
                self.tools.push(ToolRun { call, tool, input, started, confirmed_by, finished: None });
            }
            "tool.finished" => {
                let run = self.tools.iter_mut().rev().find(|run| run.call == call && run.finished.is_none());
                if let Some(run) = run {
                    run.finished =
                        Some(ToolEnd { at: row.at(), ok: row.flag("ok"), message: row.text("message") });
                }
            }
            _ => {}
        }
    }

    fn note_question(&mut self, row: Row<'_>) {
        let id = row.text("question");
        if row.name() == "question.held" {
            self.questions.push(Question {
                id,
                tool: row.text("tool"),
                text: row.text("text"),
                held: row.at(),
                askings: Vec::new(),
                answers: Vec::new(),
                dropped: None,
                run: None,
            });
            return;
        }
        let Some(question) = self.questions.iter_mut().rev().find(|question| question.id == id) else {
            return;
        };
        match row.name() {
            "question.started" => question.askings.push(Asking { started: row.at(), heard: None }),
            "question.heard" => {
                let latest = row.time_or_at("latest_ms");
                let earliest = row.time("earliest_ms").unwrap_or(latest).min(latest);
                let evidence = row.text("evidence");
                if let Some(asking) = question.askings.last_mut() {
                    asking.heard = Some(Horizon { earliest, latest, evidence });
                }
                self.end = self.end.max(latest);
            }
            "question.dropped" => question.dropped = Some((row.at(), row.text("reason"))),
            "answer.checked" => question.answers.push(Answer {
                at: row.at(),
                words: row.text("words"),
                onset: row.time_or_at("onset_ms"),
                margin: row.time("margin_ms").unwrap_or(0.0),
                verdict: row.text("verdict"),
                veto: row.maybe("veto"),
                error: row.maybe("error"),
            }),
            _ => {}
        }
    }

    /// A piece of speech is a question if a question began when it began.
    fn mark_questions(&mut self) {
        for utterance in &mut self.utterances {
            utterance.question = self.questions.iter().any(|question| {
                let begins =
                    |asking: &Asking| utterance.started.is_some_and(|s| (s - asking.started).abs() < 1.0);
                question.text == utterance.text || question.askings.iter().any(begins)
            });
        }
    }
}

impl Utterance {
    /// When it was no longer heard: its end, or where it was cut off.
    pub(super) fn until(&self, end: f64) -> f64 {
        self.heard.as_ref().map_or(end, |heard| heard.latest)
    }
}

impl Utterance {
    /// Its text in two parts: what was heard of it, and what was not.
    pub(super) fn heard_and_rest(&self) -> (&str, &str) {
        match &self.heard {
            Some(heard) if heard.complete => (&self.text, ""),
            Some(heard) => match self.text.strip_prefix(heard.text.trim_end()) {
                Some(rest) => (&self.text[..self.text.len() - rest.len()], rest),
                None => (&heard.text, ""),
            },
            None if self.started.is_some() => (&self.text, ""),
            None => ("", &self.text),
        }
    }
}
