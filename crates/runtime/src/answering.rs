//! Who has answered a call that we made: a person, or a machine that plays its greeting.
//!
//! A person says "hello?" and waits. A machine talks on. Nothing else is measured, and both can be mistaken: until a
//! person was heard no question is asked (VC-84), and what a machine says never reaches the recogniser's words. A beep
//! behind a greeting tells a machine even where its greeting was taken for a person's word.
//!
//! ```text
//! Waiting ── a short word, then quiet ──▶ Person: Answered, and the notice if there is one
//!    │   └── nobody says anything ──▶ the greeting is said; waits on
//!    └────── talks on and on ──▶ Machine ── a beep, quiet, or it never ends ──▶ the message is left, the call ends
//! ```

use std::time::Duration;

use sayback_core::{Event, Time, VoiceFrame};
use sayback_media::tone::Tone;

/// A frame of at least this percentage is a voice.
const VOICE: u8 = 50;
/// Less than this is no word.
const SHORTEST: Duration = Duration::from_millis(120);
/// A first word that is longer than this is a machine's greeting. Few people say more than their name and their firm.
const LONGEST_HELLO: Duration = Duration::from_millis(2_400);
/// The same once we have spoken: people answer with whole sentences.
const LONGEST_ANSWER: Duration = Duration::from_secs(8);
/// Quiet after a word: whoever spoke waits for us.
const PAUSE: Duration = Duration::from_millis(700);
/// Nobody has said anything for so long: we begin.
const NOBODY: Duration = Duration::from_millis(2_500);
/// Quiet after a greeting: the machine records, with or without a beep.
const RECORDS: Duration = Duration::from_millis(1_500);
/// A tone of this length is a beep; a longer one is none that somebody records behind.
const BEEP: std::ops::RangeInclusive<Duration> = Duration::from_millis(160)..=Duration::from_millis(2_000);
/// So long behind the end of a greeting its beep comes at the latest.
const BEHIND: Duration = Duration::from_secs(4);
/// Later in a call a beep is something else.
const BEEPS_UNTIL: Duration = Duration::from_secs(45);
/// Nobody has said anything for so long, whatever we said: there is nobody.
const GIVE_UP: Duration = Duration::from_secs(30);
/// A machine that talks for longer is left.
const LONGEST_GREETING: Duration = Duration::from_secs(60);

/// What is said to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// To a person, as soon as one was heard: a notice that has to come first.
    pub notice: Option<String>,
    /// If nobody says anything.
    pub greeting: Option<String>,
    /// To a machine, once it records. Without it the call is ended instead.
    pub voicemail: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Person,
    /// Since when it plays its greeting, and when it was heard last.
    Machine {
        since: Time,
        heard: Time,
    },
    Left,
}

/// Listens to the beginning of a call that we made.
#[derive(Debug)]
pub struct Answering {
    words: Words,
    state: State,
    began: Option<Time>,
    /// A stretch of voice: its beginning and its end so far.
    stretch: Option<(Time, Time)>,
    /// We have begun to speak.
    greeted: bool,
    /// The last stretch of voice, whoever it was.
    talking: Option<(Time, Time)>,
    /// The last stretch of voice that was too long for a word of welcome.
    talked: Option<(Time, Time)>,
}

impl Answering {
    /// The call has been answered just now, by whomever.
    pub fn new(words: Words) -> Self {
        Self {
            words,
            state: State::Waiting,
            began: None,
            stretch: None,
            greeted: false,
            talking: None,
            talked: None,
        }
    }

    /// Whether what is heard are a machine's words, which are nobody's turn.
    pub fn is_machine(&self) -> bool {
        matches!(self.state, State::Machine { .. } | State::Left)
    }

    /// Takes a judged frame; what follows from it goes to the call.
    pub fn push(&mut self, frame: &VoiceFrame, on: &mut impl FnMut(Event)) {
        let began = *self.began.get_or_insert(frame.start);
        let voice = frame.speech >= VOICE;
        if voice {
            self.follow(frame);
        }
        match self.state {
            State::Waiting => self.wait(frame, frame.end.since(began), on),
            State::Machine { since, heard } => {
                let heard = if voice { frame.end } else { heard };
                self.state = State::Machine { since, heard };
                if frame.end.since(heard) >= RECORDS {
                    self.leave_message(on);
                } else if frame.end.since(since) >= LONGEST_GREETING {
                    self.leave(on);
                }
            }
            State::Person | State::Left => {}
        }
    }

    /// Takes a tone. Behind a greeting it is the machine's beep, and what we say is recorded from now on.
    pub fn on_tone(&mut self, tone: &Tone, on: &mut impl FnMut(Event)) {
        if !BEEP.contains(&tone.length()) {
            return;
        }
        match self.state {
            State::Machine { since, .. } if since < tone.start => self.leave_message(on),
            // A greeting with a pause was taken for a person (or has not been over for long): nobody beeps but machines.
            State::Waiting | State::Person => {
                let early = self.began.is_some_and(|began| tone.end.since(began) <= BEEPS_UNTIL);
                // A detector may take the beep itself for voice, and so for the greeting's last word.
                let behind = self.talked.is_some_and(|(from, to)| {
                    from + LONGEST_HELLO <= tone.start && tone.start.since(to.min(tone.start)) <= BEHIND
                });
                if early && behind {
                    tracing::info!("a machine has answered a call of ours: it beeps");
                    // Whatever is asked from here on nobody would hear (VC-84).
                    on(Event::Unanswered);
                    self.leave_message(on);
                }
            }
            State::Machine { .. } | State::Left => {}
        }
    }

    /// How long somebody has been talking in one go; short gaps do not end it.
    fn follow(&mut self, frame: &VoiceFrame) {
        let going = self.talking.filter(|(_, to)| frame.start.since(*to) < PAUSE);
        let (from, to) = (going.map_or(frame.start, |(from, _)| from), frame.end);
        self.talking = Some((from, to));
        if to.since(from) >= LONGEST_HELLO {
            self.talked = Some((from, to));
        }
    }

    fn leave_message(&mut self, on: &mut impl FnMut(Event)) {
        if let Some(text) = self.words.voicemail.take() {
            on(Event::Say { text });
        }
        self.leave(on);
    }

    fn leave(&mut self, on: &mut impl FnMut(Event)) {
        self.state = State::Left;
        // What is being said is said to its end first.
        on(Event::EndRequested);
    }

    fn wait(&mut self, frame: &VoiceFrame, passed: Duration, on: &mut impl FnMut(Event)) {
        let voice = frame.speech >= VOICE;
        let Some((from, to)) = self.stretch else {
            if voice {
                self.stretch = Some((frame.start, frame.end));
            } else if !self.greeted && passed >= NOBODY {
                self.greeted = true;
                let text = self.words.greeting.take();
                on_text(text, on);
                self.words.notice = None;
            } else if passed >= GIVE_UP {
                self.leave(on);
            }
            return;
        };
        if voice {
            self.stretch = Some((from, frame.end));
            let longest = if self.greeted { LONGEST_ANSWER } else { LONGEST_HELLO };
            if frame.end.since(from) >= longest {
                tracing::info!("a machine has answered a call of ours");
                self.state = State::Machine { since: from, heard: frame.end };
                if self.words.voicemail.is_none() {
                    self.leave(on);
                }
            }
        } else if frame.end.since(to) >= PAUSE {
            self.stretch = None;
            if to.since(from) >= SHORTEST {
                self.state = State::Person;
                on(Event::Answered);
                let text = self.words.notice.take();
                on_text(text, on);
            }
        }
    }
}

fn on_text(text: Option<String>, on: &mut impl FnMut(Event)) {
    if let Some(text) = text {
        on(Event::Say { text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches of voice and quiet in milliseconds, one after the other, and what they lead to, with its time.
    fn hear(answering: &mut Answering, stretches: &[(u64, bool)]) -> Vec<(u64, String)> {
        let mut told = Vec::new();
        let mut at = 0;
        for (length, voice) in stretches {
            for _ in 0..length / 32 {
                let (start, end) = (Time::from_millis(at), Time::from_millis(at + 32));
                let speech = if *voice { 95 } else { 2 };
                let frame = VoiceFrame { start, end, speech, rise: start };
                answering.push(&frame, &mut |event| told.push((at, format!("{event:?}"))));
                at += 32;
            }
        }
        told
    }

    fn answering() -> Answering {
        Answering::new(Words {
            notice: Some("This call is recorded.".to_owned()),
            greeting: Some("Good morning.".to_owned()),
            voicemail: Some("Please call us back.".to_owned()),
        })
    }

    #[test]
    fn vc_84_a_short_hello_is_a_person() {
        for hello in [160, 600, 1_500, 2_200] {
            let mut answering = answering();
            let told = hear(&mut answering, &[(640, false), (hello, true), (2_000, false), (9_000, true)]);
            let said: Vec<&str> = told.iter().map(|(_, event)| event.as_str()).collect();
            assert_eq!(said, ["Answered", "Say { text: \"This call is recorded.\" }"], "{hello}");
            assert!(!answering.is_machine());
        }
    }

    #[test]
    fn vc_84_who_talks_on_is_a_machine_and_gets_the_message_when_it_is_quiet() {
        let mut answering = answering();
        let told =
            hear(&mut answering, &[(320, false), (4_000, true), (500, false), (3_000, true), (3_000, false)]);
        let said: Vec<&str> = told.iter().map(|(_, event)| event.as_str()).collect();
        assert_eq!(said, ["Say { text: \"Please call us back.\" }", "EndRequested"]);
        assert!(told[0].0 >= 7_820 + 1_400, "{told:?}");
        assert!(answering.is_machine());
    }

    fn beep(answering: &mut Answering, start: u64, length: u64) -> Vec<String> {
        let mut told = Vec::new();
        let tone =
            Tone { start: Time::from_millis(start), end: Time::from_millis(start + length), hertz: 1_000 };
        answering.on_tone(&tone, &mut |event| told.push(format!("{event:?}")));
        told
    }

    const LEFT: [&str; 2] = ["Say { text: \"Please call us back.\" }", "EndRequested"];

    #[test]
    fn vc_84_behind_its_beep_a_machine_gets_the_message_at_once() {
        let mut answering = answering();
        assert!(hear(&mut answering, &[(320, false), (4_000, true), (320, false)]).is_empty());
        assert_eq!(beep(&mut answering, 4_400, 400), LEFT);
        assert!(beep(&mut answering, 5_400, 400).is_empty(), "once");
    }

    #[test]
    fn vc_84_a_greeting_that_was_taken_for_a_person_is_told_by_its_beep() {
        let mut answering = answering();
        let told =
            hear(&mut answering, &[(320, false), (960, true), (960, false), (3_200, true), (640, false)]);
        assert_eq!(told[0].1, "Answered");
        let told = beep(&mut answering, 6_100, 300);
        assert_eq!(told[0], "Unanswered", "nothing is asked from here on");
        assert_eq!(told[1..], LEFT);
        assert!(answering.is_machine());
    }

    #[test]
    fn vc_84_a_beep_that_is_taken_for_voice_is_a_beep_all_the_same() {
        let mut answering = answering();
        let greeting = [(320, false), (960, true), (960, false), (3_200, true), (480, false), (416, true)];
        assert_eq!(hear(&mut answering, &greeting)[0].1, "Answered");
        assert_eq!(beep(&mut answering, 5_920, 400)[0], "Unanswered");
        // With no more than a word in front of it, it is somebody's telephone or oven.
        let mut answering = self::answering();
        hear(&mut answering, &[(320, false), (960, true), (480, false), (416, true), (960, false)]);
        assert!(beep(&mut answering, 1_760, 400).is_empty());
    }

    #[test]
    fn a_tone_that_stands_behind_no_greeting_tells_nothing() {
        // A person, and something beeps.
        let mut person = answering();
        hear(&mut person, &[(320, false), (600, true), (2_000, false)]);
        assert!(beep(&mut person, 2_900, 300).is_empty());
        // Long after they have talked, and late in the call.
        hear(&mut person, &[(9_000, true)]);
        assert!(beep(&mut person, 15_000, 300).is_empty());
        // A clicking, and a tone without an end, while a machine talks.
        let mut machine = answering();
        hear(&mut machine, &[(320, false), (4_000, true)]);
        assert!(beep(&mut machine, 4_400, 100).is_empty() && beep(&mut machine, 4_400, 3_000).is_empty());
    }

    #[test]
    fn without_a_message_a_machine_is_hung_up_on_at_once() {
        let mut answering = Answering::new(Words::default());
        let told = hear(&mut answering, &[(320, false), (9_000, true)]);
        assert_eq!(told.len(), 1);
        assert!(told[0].1 == "EndRequested" && told[0].0 < 3_000, "{told:?}");
    }

    #[test]
    fn a_machine_that_never_ends_is_left_within_a_minute() {
        let mut answering = answering();
        let told = hear(&mut answering, &[(120_000, true)]);
        assert_eq!(told.len(), 1);
        assert!(told[0].1 == "EndRequested" && told[0].0 <= 60_100, "{told:?}");
    }

    #[test]
    fn where_nobody_speaks_we_greet_and_a_long_answer_is_a_person() {
        let mut answering = answering();
        let told = hear(&mut answering, &[(4_000, false), (5_000, true), (1_000, false)]);
        let said: Vec<&str> = told.iter().map(|(_, event)| event.as_str()).collect();
        assert_eq!(said, ["Say { text: \"Good morning.\" }", "Answered"]);
        assert!((2_400..2_700).contains(&told[0].0), "{told:?}");
    }

    #[test]
    fn a_call_that_nobody_speaks_on_is_given_up() {
        let told = hear(&mut answering(), &[(60_000, false)]);
        assert_eq!(told.len(), 2);
        assert!(told[1].1 == "EndRequested" && (29_900..30_100).contains(&told[1].0), "{told:?}");
    }

    #[test]
    fn a_click_is_nobody() {
        let mut answering = answering();
        let told = hear(&mut answering, &[(320, false), (64, true), (1_500, false)]);
        assert!(told.is_empty(), "{told:?}");
    }
}
