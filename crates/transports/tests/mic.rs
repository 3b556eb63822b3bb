//! The microphone line on virtual devices: what it reports against what was really played and recorded.
//!
//! Both ends of a loop are stamped on one clock: the line plays into a null sink and listens to that sink's monitor.

#![expect(clippy::unwrap_used, reason = "a test of its own crate, whose figures are wanted")]
#![expect(clippy::wildcard_enum_match_arm, reason = "each test picks the one event that it is about")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use sayback_core::{PlayoutEvent, PlayoutFailure, Time, UtteranceId};
use sayback_media::noise::WhiteNoise;
use sayback_media::pcm::level_dbfs;
use sayback_rig::{Rig, inside};
use sayback_transports::mic::{
    Block, CallClock, DeviceChoice, Direction, EchoMode, LineEvent, LineFact, MicError, MicLine, MicOptions,
    calibrate, devices,
};
use tokio::sync::mpsc::Receiver;

/// Divisible by 100: where an utterance ends is measured in frames of 10 ms.
const VOICE_RATE: u32 = 24_000;

/// The end of an utterance is stated this much behind its last loud frame: what a room adds.
const AFTERGLOW: Duration = Duration::from_millis(20);

#[expect(clippy::disallowed_methods, reason = "the test is the caller who owns the call clock")]
fn call_clock() -> CallClock {
    let start = Instant::now();
    Arc::new(move || Time::ZERO + start.elapsed())
}

fn named(name: &str) -> DeviceChoice {
    DeviceChoice { name: Some(name.to_owned()), ..DeviceChoice::default() }
}

fn looped(output: DeviceChoice, input: DeviceChoice) -> MicOptions {
    MicOptions { input, output, calibration: None, echo: EchoMode::None }
}

/// A tone that is as loud at its ends as in its middle, so that both are found to a fraction of a millisecond.
fn tone(rate: u32, millis: u32) -> Vec<i16> {
    let step = 1_000.0 * std::f64::consts::TAU / f64::from(rate);
    (0..rate * millis / 1_000).map(|n| ((f64::from(n) * step).sin() * 16_000.0) as i16).collect()
}

/// A line and everything it has told so far.
struct Call {
    line: MicLine,
    clock: CallClock,
    facts: Receiver<LineFact>,
    blocks: Vec<Block>,
    playout: Vec<PlayoutEvent>,
    events: Vec<LineEvent>,
}

impl Call {
    fn open(options: MicOptions) -> Self {
        let clock = call_clock();
        let (line, facts) = MicLine::open(options, Arc::clone(&clock)).unwrap();
        let mut call =
            Self { line, clock, facts, blocks: Vec::new(), playout: Vec::new(), events: Vec::new() };
        call.listen(Duration::from_millis(600));
        call
    }

    fn now(&self) -> Time {
        (self.clock)()
    }

    fn step(&mut self) {
        match self.facts.blocking_recv().expect("the line is open") {
            LineFact::Heard(block) => self.blocks.push(block),
            LineFact::Playout(event) => self.playout.push(event),
            LineFact::Line(event) => self.events.push(event),
        }
    }

    /// Takes facts until the microphone has been heard for that long from now on.
    fn listen(&mut self, span: Duration) {
        let until = self.now() + span;
        while self.blocks.last().is_none_or(|block| block.start < until) {
            self.step();
        }
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let limit = self.now() + Duration::from_secs(12);
        while !done(self) {
            assert!(self.now() < limit, "no {what} in {:?} {:?}", self.playout, self.events);
            self.step();
        }
    }

    fn say(&mut self, utterance: u32, samples: &[i16]) {
        self.line.begin(UtteranceId(utterance), VOICE_RATE).unwrap();
        assert!(self.line.push(UtteranceId(utterance), samples).is_continue());
        self.line.finish(UtteranceId(utterance));
    }

    /// First and one past the last loud sample that was heard between two times.
    fn heard(&self, from: Time, to: Time) -> Option<(Time, Time)> {
        let loud = self.blocks.iter().flat_map(|block| {
            let at = |n: usize| block.start + Duration::from_nanos(n as u64 * 62_500);
            block
                .samples
                .iter()
                .enumerate()
                .filter(|(_, s)| s.abs() > 0.1)
                .map(move |(n, _)| (at(n), at(n + 1)))
        });
        loud.filter(|(at, _)| *at >= from && *at < to).fold(None, |seen, (start, end)| {
            Some((seen.map_or(start, |(first, _): (Time, Time)| first), end))
        })
    }

    fn started(&self, utterance: u32) -> Option<Time> {
        self.playout.iter().find_map(|event| match event {
            PlayoutEvent::Started { utterance: UtteranceId(id), at } if *id == utterance => Some(*at),
            _ => None,
        })
    }

    /// Where its sound ends, the afterglow left out.
    fn finished(&self, utterance: u32) -> Option<Time> {
        self.playout.iter().find_map(|event| match event {
            PlayoutEvent::Finished { utterance: UtteranceId(id), last_audible, .. } if *id == utterance => {
                Some(*last_audible - AFTERGLOW)
            }
            _ => None,
        })
    }
}

fn millis(later: Time, earlier: Time) -> f64 {
    later.diff_micros(earlier) as f64 / 1_000.0
}

/// Says some bursts and gives the errors of the reported starts and ends, in ms; positive is reported too late.
fn burst_errors(call: &mut Call, count: u32) -> Vec<(f64, f64)> {
    (0..count)
        .map(|n| {
            let from = call.now();
            call.say(n, &tone(VOICE_RATE, 300 + n * 40));
            call.until("end", |call| call.finished(n).is_some());
            call.listen(Duration::from_millis(300));
            let (start, end) = (call.started(n).unwrap(), call.finished(n).unwrap());
            let (real_start, real_end) = call.heard(from, call.now()).expect("the burst was heard");
            (millis(start, real_start), millis(end, real_end))
        })
        .collect()
}

/// Pieces of loud sound in a recording, each with its first and one past its last sample; 50 ms of quiet part them.
fn loud_pieces(samples: &[i16]) -> Vec<(usize, usize)> {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for place in (0..samples.len()).filter(|n| samples[*n].unsigned_abs() > 3_000) {
        match pieces.last_mut() {
            Some((_, end)) if place - *end < 2_400 => *end = place + 1,
            _ => pieces.push((place, place + 1)),
        }
    }
    pieces
}

/// The median of some errors in ms, by magnitude, or a quarter of the largest: none may exceed the 20 ms that are stated of a
/// measured loop.
fn median(errors: impl IntoIterator<Item = f64>) -> f64 {
    let mut errors: Vec<f64> = errors.into_iter().map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2].max(errors[errors.len() - 1] / 4.0)
}

#[expect(clippy::print_stdout, reason = "the figures are wanted")]
fn report(line: &str) {
    println!("{line}");
}

/// The smallest of up to three figures, the first that is at most 5 if there is one.
///
/// The virtual devices are programs: on a machine that is busy with something else they themselves run late or dry, and
/// then a single figure says more about that than about the line.
fn best_of_three(mut trial: impl FnMut() -> f64) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        best = best.min(trial());
        if best <= 5.0 {
            break;
        }
    }
    best
}

/// Says eight bursts on a fresh line, prints all errors and gives their median.
fn end_error(rig: &Rig) -> f64 {
    let recording = rig.record_speaker().unwrap();
    let mut call = Call::open(looped(named("speaker"), named("speaker_tap")));
    let errors = burst_errors(&mut call, 8);
    report(&format!("start and end, reported minus real, in ms: {errors:.2?}"));

    // The same against a recording from outside, which has no common clock: the distances agree.
    let samples: Vec<i16> = recording.stop().into_iter().flat_map(|piece| piece.samples).collect();
    let pieces = loud_pieces(&samples);
    assert_eq!(pieces.len(), 8);
    let apart = |n: usize| (pieces[n].1 - pieces[0].1) as f64 / 48.0;
    let reported = |n: u32| millis(call.finished(n).unwrap(), call.finished(0).unwrap());
    let drifts: Vec<f64> = (1..8).map(|n| reported(n) - apart(n as usize)).collect();
    report(&format!("distance of ends, reported minus recorded, in ms: {drifts:.2?}"));
    median(errors.into_iter().flat_map(|(start, end)| [start, end]).chain(drifts))
}

#[test]
fn the_reported_end_is_where_the_sound_ends() {
    inside("the_reported_end_is_where_the_sound_ends", |rig| {
        let best = best_of_three(|| end_error(rig));
        assert!(best <= 5.0, "{best} ms off");
    });
}

#[test]
fn devices_of_any_rate_format_and_channels_are_heard_in_time() {
    inside("devices_of_any_rate_format_and_channels_are_heard_in_time", |_| {
        for (rate, channels, format) in
            [(44_100, 2, "i16"), (16_000, 1, "f32"), (8_000, 2, "u8"), (96_000, 6, "i32")]
        {
            let choice = |name: &str| DeviceChoice {
                rate: Some(rate),
                channels: Some(channels),
                format: Some(format.to_owned()),
                ..named(name)
            };
            let best = best_of_three(|| {
                let mut call = Call::open(looped(choice("feed"), choice("microphone")));
                let errors = burst_errors(&mut call, 2);
                println!(
                    "{rate} Hz, {channels} channels, {format}: reported minus real, in ms: {errors:.2?}"
                );
                errors.iter().map(|(start, end)| start.abs().max(end.abs()) / 4.0).fold(0.0, f64::max)
            });
            assert!(best <= 5.0, "{rate} Hz, {channels} channels, {format}: {} ms off", best * 4.0);
        }
    });
}

#[test]
fn a_recorded_caller_arrives_with_its_rhythm() {
    inside("a_recorded_caller_arrives_with_its_rhythm", |rig| {
        let best = best_of_three(|| rhythm_error(rig));
        assert!(best <= 5.0, "{} ms off", best * 4.0);
    });
}

/// A quarter of what the distances of three bursts that were played into the microphone are off by, in ms.
fn rhythm_error(rig: &Rig) -> f64 {
    let mut call = Call::open(looped(named("speaker"), named("microphone")));
    let from = call.now();
    let mut samples = vec![0i16; 16_000];
    for millis in [700, 1_300] {
        samples.extend(tone(16_000, 200));
        samples.resize(samples.len() + 16 * millis, 0);
    }
    samples.extend(tone(16_000, 200));
    let samples = samples.into_iter().map(|s| f32::from(s) / 32_768.0).collect();
    let player = rig.play("caller", &sayback_media::Clip::mono(16_000, samples)).unwrap();
    call.listen(Duration::from_millis(4_800));
    player.finish().unwrap();
    assert_eq!(call.events, []);
    let first = call.heard(from, call.now()).unwrap().0;
    let second = call.heard(first + Duration::from_millis(500), call.now()).unwrap().0;
    let third = call.heard(second + Duration::from_millis(500), call.now()).unwrap().0;
    let (near, far) = (millis(second, first), millis(third, second));
    report(&format!("onsets apart: {near:.2} and {far:.2} ms, played 900 and 1500"));
    assert!(first >= from + Duration::from_millis(1_000));
    assert!(!call.blocks.iter().any(|block| block.gated));
    (near - 900.0).abs().max((far - 1_500.0).abs()) / 4.0
}

/// How much longer than 25 ms after it was asked for a pause begins, or how far what is told of it is off, in ms.
fn pause_error() -> f64 {
    let mut call = Call::open(looped(named("speaker"), named("speaker_tap")));
    call.say(1, &tone(VOICE_RATE, 1_000));
    call.until("start", |call| call.started(1).is_some());
    call.listen(Duration::from_millis(300));
    let asked = call.now();
    call.line.pause();
    call.listen(Duration::from_millis(500));
    let resumed = call.now();
    call.line.resume();
    call.until("end", |call| call.finished(1).is_some());
    call.listen(Duration::from_millis(200));
    let (start, silent) = call.heard(Time::ZERO, resumed).unwrap();
    let (again, end) = call.heard(resumed, call.now()).unwrap();
    let reported = call.playout.iter().find_map(|event| match event {
        PlayoutEvent::Paused { at } => Some(*at),
        _ => None,
    });
    report(&format!(
        "pause: asked to silent {:.2} ms, reported {:.2} ms off; resume {:.2} ms",
        millis(silent, asked),
        millis(reported.unwrap(), silent),
        millis(again, resumed)
    ));
    let played = millis(silent, start) + millis(end, again);
    report(&format!("{played:.2} ms were played of 1000"));
    let finished = millis(call.finished(1).unwrap(), end).abs();
    let told = millis(reported.unwrap(), silent).abs().max(finished);
    told.max((played - 1_000.0).abs()).max(millis(silent, asked) - 25.0)
}

#[test]
fn a_pause_is_quick_and_loses_nothing() {
    inside("a_pause_is_quick_and_loses_nothing", |_| {
        // One buffer, and what the device holds.
        let best = best_of_three(pause_error);
        assert!(best <= 5.0, "{best} ms later than 25, or off");
    });
}

/// How much longer than 25 ms after it was asked for it is silent after a clear, or how far what is told of it is off, in ms.
fn clear_error() -> f64 {
    let mut call = Call::open(looped(named("speaker"), named("speaker_tap")));
    call.say(1, &tone(VOICE_RATE, 2_000));
    call.say(2, &tone(VOICE_RATE, 500));
    call.until("start", |call| call.started(1).is_some());
    call.listen(Duration::from_millis(400));
    let asked = call.now();
    call.line.clear();
    assert!(call.line.push(UtteranceId(1), &[1]).is_break());
    call.listen(Duration::from_millis(600));
    let (start, silent) = call.heard(Time::ZERO, call.now()).unwrap();
    report(&format!("clear: asked to silent {:.2} ms", millis(silent, asked)));
    let delay = millis(silent, asked);
    let cleared: Vec<(u32, f64)> = call
        .playout
        .iter()
        .filter_map(|event| match event {
            PlayoutEvent::Cleared { utterance, played, .. } => {
                Some((utterance.0, played.as_secs_f64() * 1e3))
            }
            _ => None,
        })
        .collect();
    report(&format!("cleared: {cleared:.2?}, really played {:.2} ms", millis(silent, start)));
    assert_eq!(cleared.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2]);
    assert!(cleared[1].1 == 0.0);
    let told = (cleared[0].1 - millis(silent, start)).abs();
    assert!(call.finished(1).is_none() && call.started(2).is_none());
    let from = call.now();
    call.say(3, &tone(VOICE_RATE, 300));
    call.until("end", |call| call.finished(3).is_some());
    call.listen(Duration::from_millis(100));
    let (start, end) = call.heard(from, call.now()).unwrap();
    let next = (millis(end, start) - 300.0).abs() * 2.5;
    told.max(next).max(delay - 25.0)
}

#[test]
fn nothing_sounds_after_a_clear_but_what_is_said_next() {
    inside("nothing_sounds_after_a_clear_but_what_is_said_next", |_| {
        // One buffer, and what the device holds.
        let best = best_of_three(clear_error);
        assert!(best <= 5.0, "{best} ms later than 25, or off");
    });
}

#[test]
fn an_unplugged_speaker_is_reported_and_the_call_goes_on() {
    inside("an_unplugged_speaker_is_reported_and_the_call_goes_on", |rig| {
        let mut call = Call::open(looped(named("speaker"), named("microphone")));
        call.say(1, &tone(VOICE_RATE, 5_000));
        call.until("start", |call| call.started(1).is_some());
        call.listen(Duration::from_millis(300));
        rig.pactl(&["suspend-sink", "speaker", "1"]).unwrap();
        let lost = |call: &Call| call.events.iter().any(|e| matches!(e, LineEvent::OutputLost { .. }));
        call.until("loss", lost);
        println!("{:?}", call.events);
        call.until("failure", |call| {
            call.playout.iter().any(|event| {
                matches!(event, PlayoutEvent::Failed { failure: PlayoutFailure::DeviceLost, played, .. }
                    if (200..700).contains(&played.as_millis()))
            })
        });
        assert!(call.finished(1).is_none());
        rig.pactl(&["suspend-sink", "speaker", "0"]).unwrap();
        call.until("return", |call| call.events.iter().any(|e| matches!(e, LineEvent::OutputBack { .. })));
        call.say(2, &tone(VOICE_RATE, 200));
        call.until("end after the return", |call| call.finished(2).is_some());
    });
}

#[test]
fn an_unplugged_microphone_is_reported_and_the_gap_is_censored() {
    inside("an_unplugged_microphone_is_reported_and_the_gap_is_censored", |rig| {
        let mut call = Call::open(looped(named("speaker"), named("microphone")));
        let last = call.blocks.last().unwrap().start;
        rig.pactl(&["suspend-sink", "feed", "1"]).unwrap();
        call.until("loss", |call| call.events.iter().any(|e| matches!(e, LineEvent::InputLost { .. })));
        rig.pactl(&["suspend-sink", "feed", "0"]).unwrap();
        call.until("return", |call| call.events.iter().any(|e| matches!(e, LineEvent::InputBack { .. })));
        call.listen(Duration::from_millis(200));
        println!("{:?}", call.events);
        let censored = call.events.iter().find_map(|event| match event {
            LineEvent::Censored { from, to } => Some((*from, *to)),
            _ => None,
        });
        let (from, to) = censored.expect("the gap is told");
        let inside = |block: &&Block| {
            block.start > from + Duration::from_millis(40) && block.start < to - Duration::from_millis(40)
        };
        assert!(from <= last + Duration::from_millis(500) && to > from);
        assert_eq!(call.blocks.iter().filter(inside).count(), 0);
    });
}

#[test]
fn the_delay_of_a_loop_is_measured_and_a_deaf_microphone_is_told() {
    inside("the_delay_of_a_loop_is_measured_and_a_deaf_microphone_is_told", |_| {
        let best = best_of_three(|| {
            let found = calibrate(looped(named("speaker"), named("speaker_tap")), call_clock()).unwrap();
            println!("{found:?}");
            assert!(found.confidence > 0.8, "{found:?}");
            found.delay_ms - 5.0
        });
        assert!(best <= 5.0, "{best} ms longer than 5");
        let deaf = calibrate(looped(named("speaker"), named("microphone")), call_clock()).unwrap_err();
        assert!(matches!(deaf, MicError::NoChirp { .. }), "{deaf}");
    });
}

/// Something like speech: noise in syllables.
fn babble(seconds: usize) -> Vec<i16> {
    let rate = VOICE_RATE as usize;
    let mut noise = WhiteNoise::new(3).samples(rate * seconds, -20.0);
    let mut low = 0.0;
    for (n, sample) in noise.iter_mut().enumerate() {
        low += 0.2 * (*sample - low);
        *sample = low * (n as f32 * 25.0 / rate as f32).sin().max(0.0);
    }
    noise.iter().map(|sample| sayback_media::pcm::to_i16(sample * 2.0)).collect()
}

/// How many dB of the agent's voice are left in the microphone, above 25 dB less than there was.
fn echo_left() -> f64 {
    let options = MicOptions { echo: EchoMode::Cancel, ..looped(named("speaker"), named("speaker_tap")) };
    let mut call = Call::open(options);
    call.say(1, &babble(6));
    call.until("end", |call| call.finished(1).is_some());
    assert!(!call.blocks.iter().any(|block| block.gated));
    let from = call.started(1).unwrap() + Duration::from_secs(3);
    let late: Vec<&Block> = call.blocks.iter().filter(|block| block.start >= from).collect();
    let level = |pick: fn(&Block) -> &Vec<f32>| {
        level_dbfs(&late.iter().flat_map(|block| pick(block).iter().copied()).collect::<Vec<f32>>())
    };
    let (raw, cleaned, played) = (level(|b| &b.raw), level(|b| &b.samples), level(|b| &b.played));
    report(&format!("heard {raw:.1} dBFS, played {played:.1}, without the echo {cleaned:.1}"));
    // What was played is known to 1 dB.
    (f64::from(cleaned - raw) + 25.0).max(f64::from((raw - played).abs()) * 5.0)
}

#[test]
fn the_agents_own_voice_is_taken_out_of_the_microphone() {
    inside("the_agents_own_voice_is_taken_out_of_the_microphone", |_| {
        let left = best_of_three(echo_left);
        assert!(left <= 5.0, "{left} dB above what is allowed");
    });
}

#[test]
fn half_duplex_gates_what_is_heard_of_the_agent_and_nothing_else() {
    inside("half_duplex_gates_what_is_heard_of_the_agent_and_nothing_else", |_| {
        let options =
            MicOptions { echo: EchoMode::HalfDuplex, ..looped(named("speaker"), named("speaker_tap")) };
        let mut call = Call::open(options);
        call.say(1, &tone(VOICE_RATE, 500));
        call.until("end", |call| call.finished(1).is_some());
        call.listen(Duration::from_millis(400));
        let loud = |block: &Block| block.samples.iter().any(|sample| sample.abs() > 0.1);
        assert!(call.blocks.iter().all(|block| !loud(block) || block.gated));
        let gated: Vec<Time> =
            call.blocks.iter().filter(|block| block.gated).map(|block| block.start).collect();
        // Up to 120 ms behind the end, because the loop was not measured.
        let until = call.finished(1).unwrap() + AFTERGLOW + Duration::from_millis(120);
        // From when it is on its way to the device.
        assert!((0.0..=150.0).contains(&millis(call.started(1).unwrap(), gated[0])));
        assert!(millis(until, *gated.last().unwrap()).abs() <= 10.0);
    });
}

#[test]
fn devices_are_listed_and_a_wrong_name_is_refused_with_the_right_ones() {
    inside("devices_are_listed_and_a_wrong_name_is_refused_with_the_right_ones", |_| {
        let all = devices().unwrap();
        let speaker = all.iter().find(|d| d.name == "speaker" && d.direction == Direction::Output).unwrap();
        assert!(speaker.rates.iter().any(|(low, high)| (*low..=*high).contains(&48_000)));
        assert!(speaker.channels.contains(&1) && speaker.problem.is_none());
        assert!(all.iter().any(|d| d.default && d.direction == Direction::Input));
        let error =
            MicLine::open(looped(named("speaker"), named("spaeker")), call_clock()).unwrap_err().to_string();
        assert!(error.contains("spaeker") && error.contains("microphone"), "{error}");
    });
}
