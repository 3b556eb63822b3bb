//! The mouth of a network line, on a virtual clock.

#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]
#![expect(clippy::wildcard_enum_match_arm, reason = "each test picks the one event that it is about")]

use std::time::Duration;

use proptest::prelude::*;
use sayback_core::{EvidenceClass, LoopDelay, PlayoutEvent, PlayoutFailure, Time, UtteranceId};
use sayback_transports::wire::{Mouth, Out, Proof, WireOptions};

const A: UtteranceId = UtteranceId(1);
const B: UtteranceId = UtteranceId(2);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn options(proof: Proof) -> WireOptions {
    WireOptions {
        rate: 8_000,
        frame: ms(20),
        lead: match proof {
            Proof::Sent => Duration::ZERO,
            Proof::Marks => ms(40),
        },
        proof,
        delay: LoopDelay { at_least: Duration::ZERO, at_most: ms(350) },
        evidence: match proof {
            Proof::Sent => EvidenceClass::Assumed,
            Proof::Marks => EvidenceClass::Mark,
        },
        telephone: true,
        continuous: proof == Proof::Sent,
    }
}

/// A driver on a virtual clock: polls when it is told to, and notes what leaves when.
struct World {
    mouth: Mouth,
    now: Time,
    sent: Vec<(Time, Out)>,
    events: Vec<PlayoutEvent>,
}

impl World {
    fn new(proof: Proof) -> Self {
        Self { mouth: Mouth::new(options(proof), at(0)), now: at(0), sent: Vec::new(), events: Vec::new() }
    }

    fn run(&mut self, until: Time) {
        let mut frame = Vec::new();
        loop {
            while let Some(out) = self.mouth.poll(self.now, &mut frame) {
                if matches!(out, Out::Frame { .. }) {
                    self.mouth.sent(self.now);
                }
                self.sent.push((self.now, out));
            }
            self.events.extend(std::iter::from_fn(|| self.mouth.poll_event()));
            match self.mouth.poll_timeout() {
                Some(next) if next <= until => self.now = next.max(self.now),
                Some(_) | None => break,
            }
        }
        self.now = until;
    }

    fn say(&mut self, id: UtteranceId, sound_ms: usize, silence_ms: usize) {
        let tone = (0..sound_ms * 16).map(|n| if n % 32 < 16 { 8_000 } else { -8_000 });
        let samples: Vec<i16> = tone.chain(std::iter::repeat_n(0, silence_ms * 16)).collect();
        self.mouth.begin(id, 16_000).unwrap();
        assert!(self.mouth.push(id, &samples));
        self.mouth.finish(id);
    }

    fn frames(&self) -> Vec<(Time, bool)> {
        let of = |(at, out): &(Time, Out)| match out {
            Out::Frame { silent, .. } => Some((*at, *silent)),
            Out::Mark { .. } | Out::Clear | Out::Digits { .. } | Out::End => None,
        };
        self.sent.iter().filter_map(of).collect()
    }

    fn marks(&self) -> Vec<(Time, String)> {
        let of = |(at, out): &(Time, Out)| match out {
            Out::Mark { name } => Some((*at, name.clone())),
            Out::Frame { .. } | Out::Clear | Out::Digits { .. } | Out::End => None,
        };
        self.sent.iter().filter_map(of).collect()
    }

    fn finished(&self) -> Vec<(UtteranceId, Time, EvidenceClass, Duration)> {
        let of = |event: &PlayoutEvent| match event {
            PlayoutEvent::Finished { utterance, last_audible, evidence, lost, .. } => {
                Some((*utterance, *last_audible, *evidence, *lost))
            }
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }
}

#[test]
fn frames_leave_each_20_ms_and_the_end_is_the_last_audible_sample() {
    let mut world = World::new(Proof::Sent);
    world.run(at(95));
    world.say(A, 500, 300);
    world.run(at(2_000));
    let frames = world.frames();
    assert!(frames.iter().enumerate().all(|(n, (left, _))| *left == at(20 * n as u64)));
    assert!(world.events.contains(&PlayoutEvent::Started { utterance: A, at: at(100) }));
    let (utterance, end, evidence, lost) = world.finished()[0];
    assert_eq!((utterance, evidence, lost), (A, EvidenceClass::Assumed, Duration::ZERO));
    // 500 ms of sound and 20 ms of afterglow, to the frame of the measure; not the 300 ms of silence.
    assert!(end >= at(620) && end <= at(640), "{end}");
}

#[test]
fn nothing_said_is_nothing_sent_where_silence_is_left_out() {
    let mut world = World::new(Proof::Marks);
    world.run(at(5_000));
    assert!(world.sent.is_empty());
    world.say(A, 100, 0);
    world.run(at(5_010));
    assert_eq!(world.frames().first(), Some(&(at(5_000), false)));
    assert!(world.events.contains(&PlayoutEvent::Started { utterance: A, at: at(5_000) }));
}

#[test]
fn a_mark_follows_the_last_audible_sample_and_the_end_is_where_it_comes_back() {
    let mut world = World::new(Proof::Marks);
    world.say(A, 500, 300);
    world.run(at(1_500));
    let marks = world.marks();
    assert_eq!(marks.len(), 1);
    assert!(marks[0].0 >= at(480) && marks[0].0 <= at(520), "{marks:?}");
    assert!(world.finished().is_empty(), "sent is not played");
    world.mouth.on_mark(&marks[0].1, at(900));
    world.run(at(1_600));
    let (utterance, end, evidence, _) = world.finished()[0];
    assert_eq!((utterance, evidence), (A, EvidenceClass::Mark));
    assert!(end >= at(900) && end <= at(920), "{end}");
}

#[test]
fn a_mark_that_comes_before_the_sound_can_have_been_played_is_not_believed() {
    let mut world = World::new(Proof::Marks);
    world.say(A, 500, 0);
    world.run(at(1_000));
    let name = world.marks()[0].1.clone();
    world.mouth.on_mark(&name, at(30));
    world.run(at(1_010));
    assert!(world.finished()[0].1 >= at(540), "{:?}", world.finished());
}

#[test]
fn a_mark_of_before_a_clear_means_nothing() {
    let mut world = World::new(Proof::Marks);
    world.say(A, 500, 0);
    world.run(at(600));
    let name = world.marks()[0].1.clone();
    world.mouth.clear(world.now);
    world.run(at(610));
    world.mouth.on_mark(&name, at(620));
    // The same utterance's number again, in the next generation: still another name.
    world.say(B, 200, 0);
    world.run(at(900));
    world.mouth.on_mark(&name, at(900));
    world.run(at(1_000));
    assert!(world.finished().is_empty());
    assert!(matches!(world.events[2], PlayoutEvent::Cleared { utterance: A, .. }), "{:?}", world.events);
    assert_eq!(world.mouth.counts().stray_marks, 2);
}

#[test]
fn a_lost_mark_is_made_good_by_the_next_and_a_repeat_counts_once() {
    let mut world = World::new(Proof::Marks);
    world.say(A, 200, 0);
    world.say(B, 200, 0);
    world.run(at(1_000));
    let second = world.marks()[1].1.clone();
    world.mouth.on_mark(&second, at(700));
    world.mouth.on_mark(&second, at(900));
    let first = world.marks()[0].1.clone();
    world.mouth.on_mark(&first, at(950));
    world.run(at(1_010));
    let ends: Vec<_> = world.finished().iter().map(|end| (end.0, end.1 >= at(700))).collect();
    assert_eq!(ends, [(A, true), (B, true)], "later than the truth, never earlier");
}

#[test]
fn what_was_not_finished_is_reported_cleared_and_late_sound_is_not_wanted() {
    let mut world = World::new(Proof::Sent);
    world.mouth.begin(A, 16_000).unwrap();
    assert!(world.mouth.push(A, &[5_000; 16_000]));
    world.run(at(300));
    world.mouth.clear(at(300));
    assert!(!world.mouth.push(A, &[5_000; 160]));
    world.mouth.finish(A);
    world.run(at(400));
    let cleared = world.events.iter().find_map(|event| match event {
        PlayoutEvent::Cleared { utterance: A, played, .. } => Some(*played),
        _ => None,
    });
    assert_eq!(cleared, Some(ms(320)));
    assert!(world.sent.iter().any(|(_, out)| *out == Out::Clear));
}

#[test]
fn a_pause_moves_the_end() {
    let mut world = World::new(Proof::Sent);
    world.say(A, 500, 0);
    world.run(at(200));
    world.mouth.pause();
    world.run(at(600));
    world.mouth.resume();
    world.run(at(2_000));
    let end = world.finished()[0].1;
    assert!(end >= at(910) && end <= at(940), "{end}");
}

#[test]
fn what_sounds_while_the_far_end_hears_nothing_is_lost() {
    let mut world = World::new(Proof::Sent);
    world.say(A, 500, 0);
    world.run(at(190));
    world.mouth.set_muted(true);
    world.run(at(390));
    world.mouth.set_muted(false);
    world.run(at(1_000));
    assert_eq!(world.finished()[0].3, ms(200));
}

#[test]
fn a_driver_that_comes_late_sends_no_burst_and_the_end_is_later() {
    let mut world = World::new(Proof::Sent);
    world.say(A, 500, 0);
    world.run(at(100));
    world.now = at(400);
    world.run(at(2_000));
    let frames = world.frames();
    let after: Vec<_> = frames.iter().filter(|(left, _)| *left >= at(400)).take(3).collect();
    assert_eq!(after.iter().map(|(left, _)| *left).collect::<Vec<_>>(), [at(400), at(420), at(440)]);
    let end = world.finished()[0].1;
    assert!(end >= at(790) && end <= at(825), "{end}");
    assert_eq!(world.mouth.counts().late, 1);
    assert!(world.mouth.counts().latest >= ms(280));
}

#[test]
fn a_lost_way_loses_what_sounds_and_what_waits_for_its_mark() {
    let mut world = World::new(Proof::Marks);
    world.say(A, 200, 0);
    world.say(B, 2_000, 0);
    world.run(at(600));
    world.mouth.lose_all();
    world.run(at(3_000));
    for (_, name) in world.marks() {
        world.mouth.on_mark(&name, at(3_000));
    }
    world.run(at(3_010));
    let lost: Vec<_> = world.finished().iter().map(|end| (end.0, end.3 > ms(1_000_000))).collect();
    assert_eq!(lost, [(A, true), (B, true)]);
}

#[test]
fn what_stands_before_a_missed_mark_was_not_played_and_what_follows_may_be() {
    let mut world = World::new(Proof::Marks);
    world.say(A, 200, 0);
    world.say(B, 200, 0);
    world.run(at(1_000));
    let names: Vec<_> = world.marks().into_iter().map(|(_, name)| name).collect();
    world.mouth.miss_mark("nobody's", at(1_000));
    world.mouth.miss_mark(&names[0], at(1_000));
    world.mouth.on_mark(&names[1], at(1_000));
    world.run(at(1_010));
    let missed = |event: &&PlayoutEvent| {
        matches!(event, PlayoutEvent::Failed { utterance: A, failure: PlayoutFailure::NotPlayed, .. })
    };
    assert_eq!(world.events.iter().filter(missed).count(), 1);
    assert_eq!(world.finished().iter().map(|end| end.0).collect::<Vec<_>>(), [B]);
}

#[test]
fn a_lost_line_fails_all_that_waits() {
    let mut world = World::new(Proof::Marks);
    world.say(A, 200, 0);
    world.say(B, 2_000, 0);
    world.run(at(600));
    world.mouth.lose_line(at(600));
    world.mouth.begin(UtteranceId(3), 16_000).unwrap();
    world.run(at(5_000));
    let failed: Vec<_> = world
        .events
        .iter()
        .filter_map(|event| match event {
            PlayoutEvent::Failed { utterance, failure, .. } => Some((*utterance, *failure)),
            _ => None,
        })
        .collect();
    let lost = PlayoutFailure::DeviceLost;
    assert_eq!(failed, [(A, lost), (B, lost), (UtteranceId(3), lost)]);
}

#[test]
fn a_voice_without_sound_or_with_an_odd_rate_is_said_to_have_failed() {
    let mut world = World::new(Proof::Sent);
    world.mouth.begin(A, 16_000).unwrap();
    world.mouth.finish(A);
    assert!(world.mouth.begin(B, 0).is_err());
    world.run(at(100));
    let no_samples = PlayoutFailure::NoSamples;
    let failed = PlayoutEvent::Failed { utterance: A, failure: no_samples, played: Duration::ZERO };
    assert_eq!(world.events, [failed]);
}

proptest! {
    /// Whatever the driver and the far end do: an end is never before the last audible sample had been sent, and each
    /// utterance is settled at most once.
    #[test]
    fn no_end_is_early(
        steps in prop::collection::vec((0_u8..7, 1_u64..400), 1..60), marked in any::<bool>(),
    ) {
        let mut world = World::new(if marked { Proof::Marks } else { Proof::Sent });
        let mut next = 0;
        let mut started = std::collections::BTreeMap::new();
        for (what, length) in steps {
            match what {
                0 | 1 => {
                    next += 1;
                    started.insert(UtteranceId(next), length);
                    world.say(UtteranceId(next), length as usize + 30, 0);
                }
                2 => world.mouth.pause(),
                3 => world.mouth.resume(),
                4 => world.mouth.clear(world.now),
                5 => {
                    let names: Vec<String> = world.marks().into_iter().map(|(_, name)| name).collect();
                    if let Some(name) = names.get(length as usize % names.len().max(1)) {
                        world.mouth.on_mark(name, world.now);
                    }
                }
                // A driver that is held up.
                _ => world.now = world.now + ms(length),
            }
            let until = world.now + ms(length);
            world.run(until);
        }
        let mut settled = std::collections::BTreeSet::new();
        let mut began = std::collections::BTreeMap::new();
        for event in &world.events {
            match event {
                PlayoutEvent::Started { utterance, at } => {
                    began.insert(*utterance, *at);
                }
                PlayoutEvent::Finished { utterance, last_audible, .. } => {
                    prop_assert!(settled.insert(*utterance), "{utterance} twice");
                    let length = ms(started[utterance] + 30);
                    prop_assert!(*last_audible >= began[utterance] + length, "{utterance} {last_audible}");
                }
                PlayoutEvent::Cleared { utterance, .. } | PlayoutEvent::Failed { utterance, .. } => {
                    prop_assert!(settled.insert(*utterance), "{utterance} twice");
                }
                _ => {}
            }
        }
    }
}
