use super::*;
use crate::telephone::mulaw_encode;
use proptest::prelude::*;

const TYPES: PayloadTypes =
    PayloadTypes { audio: 0, codec: CodecKind::Pcmu, events: Some(101), comfort_noise: Some(13) };

#[derive(Debug, PartialEq)]
enum Seen {
    Hidden(f64, f64),
    Digit(char, f64),
    Path(PathChange),
}

/// A line: what came out of it, and that its sound has no hole.
struct Line {
    inbound: Inbound,
    seen: Vec<Seen>,
    sound: Vec<f32>,
    next: Option<f64>,
    /// Largest difference between a stamp and the end of the sound before it, in ms.
    off: f64,
}

impl Line {
    fn new() -> Self {
        Self { inbound: Inbound::new(TYPES).unwrap(), seen: vec![], sound: vec![], next: None, off: 0.0 }
    }

    fn take(&mut self, work: impl FnOnce(&mut Inbound, &mut dyn FnMut(InboundFact<'_>))) {
        let Self { inbound, seen, sound, next, off } = self;
        work(inbound, &mut |fact| match fact {
            InboundFact::Hidden { from, to } => {
                seen.push(Seen::Hidden(from.as_millis_f64(), to.as_millis_f64()))
            }
            InboundFact::Digit { digit, start } => seen.push(Seen::Digit(digit, start.as_millis_f64())),
            InboundFact::Path(change) => seen.push(Seen::Path(change)),
            InboundFact::Sound { start, samples } => {
                let start = start.as_millis_f64();
                *off = off.max(next.map_or(0.0, |next| (start - next).abs()));
                *next = Some(start + samples.len() as f64 / 16.0);
                sound.extend_from_slice(samples);
            }
        });
    }

    /// Time goes on to `ms` in steps of 10 ms.
    fn pass(&mut self, from: u64, to: u64) {
        for at in (from..=to).step_by(10) {
            self.take(|inbound, sink| inbound.poll(Time::from_millis(at), sink));
        }
    }

    fn packet(&mut self, ssrc: u32, n: u64, at: u64) {
        let bytes = rtp(ssrc, n as u16, (n * 160) as u32, 0, &[mulaw_encode((n % 50) as i16 * 100); 160]);
        self.take(|inbound, sink| inbound.handle(&bytes, Time::from_millis(at), sink));
    }

    /// Samples given; the converter keeps the first four.
    fn given(&self) -> usize {
        self.sound.len() + 4
    }

    fn hidden(&self) -> f64 {
        self.seen.iter().map(|seen| if let Seen::Hidden(from, to) = seen { to - from } else { 0.0 }).sum()
    }
}

fn rtp(ssrc: u32, sequence: u16, timestamp: u32, payload_type: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    RtpPacket { marker: false, payload_type, sequence, timestamp, ssrc, payload }.write(&mut bytes);
    bytes
}

#[test]
fn what_comes_in_order_is_given_at_once() {
    let mut line = Line::new();
    for n in 0..50 {
        line.packet(1, n, 1_020 + n * 20);
        assert_eq!(line.given() as u64, (n + 1) * 320);
    }
    assert_eq!(line.seen, []);
    assert!(line.off < 0.2, "{}", line.off);
    // Its end was made when the last packet came, but for the converter's delay of 5 ms.
    assert!((line.next.unwrap() - 2_000.0 + 5.25).abs() < 0.2, "{:?}", line.next);
}

#[test]
fn packets_out_of_order_are_put_in_order() {
    let mut line = Line::new();
    for n in [0, 2, 1, 3, 5, 6, 4, 7] {
        line.packet(1, n, 1_030 + n * 20);
    }
    assert_eq!((line.given(), line.inbound.counts().used), (8 * 320, 8));
    assert_eq!(line.seen, []);
}

#[test]
fn a_lost_packet_is_waited_for_and_then_made_up_and_told() {
    let mut line = Line::new();
    for n in (0..20).filter(|n| *n != 10) {
        line.pass(1_000 + n * 20, 1_010 + n * 20);
        line.packet(1, n, 1_020 + n * 20);
    }
    assert_eq!(line.seen, [Seen::Hidden(1_200.0, 1_220.0)]);
    assert_eq!((line.given(), line.inbound.counts().concealed), (20 * 320, 160));
    assert!(line.off < 0.2);
}

#[test]
fn a_packet_that_comes_after_it_was_made_up_is_not_said_again() {
    let mut line = Line::new();
    for n in 0..5 {
        line.packet(1, n, 1_020 + n * 20);
    }
    line.pass(1_110, 1_200);
    let filled = line.given();
    line.packet(1, 5, 1_200);
    assert_eq!((line.given(), line.inbound.counts().late), (filled, 1));
    line.packet(1, 9, 1_220);
    line.pass(1_220, 1_400);
    assert!(line.given() > filled + 320);
}

#[test]
fn jitter_makes_it_wait_longer() {
    let mut calm = Line::new();
    let mut rough = Line::new();
    for n in 0..100 {
        calm.packet(1, n, 1_020 + n * 20);
        rough.packet(1, n, 1_020 + n * 20 + (n % 5) * 20);
    }
    let wait = |line: &Line| line.inbound.poll_timeout().unwrap().as_millis_f64() - 1_000.0 - 101.0 * 20.0;
    assert!((wait(&calm) - 30.0).abs() < 1.0, "{}", wait(&calm));
    assert!((90.0..110.0).contains(&wait(&rough)), "{}", wait(&rough));
}

#[test]
fn a_silence_that_is_not_sent_is_hidden_but_for_the_comfort_noise_in_it() {
    let mut line = Line::new();
    for n in 0..10 {
        line.packet(1, n, 1_020 + n * 20);
    }
    line.pass(1_220, 1_590);
    let noise = rtp(1, 10, 30 * 160, 13, &[60]);
    line.take(|inbound, sink| inbound.handle(&noise, Time::from_millis(1_620), sink));
    line.pass(1_630, 1_790);
    let speech = rtp(1, 11, 40 * 160, 0, &[0x10; 160]);
    line.take(|inbound, sink| inbound.handle(&speech, Time::from_millis(1_820), sink));
    // 400 and 200 ms are missing, less the 20 ms of comfort noise.
    assert!((line.hidden() - 580.0).abs() < 0.5, "{}", line.hidden());
    let known = |from: &f64, to: &f64| *from >= 1_619.0 || *to <= 1_601.0;
    assert!(line.seen.iter().all(|seen| matches!(seen, Seen::Hidden(from, to) if known(from, to))));
    assert!(line.off < 0.2, "{}", line.off);
}

#[test]
fn another_stream_takes_over_and_time_never_goes_back() {
    let mut line = Line::new();
    for n in 0..20 {
        line.packet(1, n, 1_020 + n * 20);
    }
    for n in 0..20 {
        line.packet(2, 7_000 + n, 1_420 + n * 20);
    }
    assert!(line.seen.contains(&Seen::Path(PathChange::Ssrc)));
    assert!(
        (line.hidden() - 20.0).abs() < 1.0,
        "the packet that gave the new stream away: {}",
        line.hidden()
    );
    assert_eq!(line.inbound.ssrc(), Some(2));
}

#[test]
fn a_clock_that_jumps_is_a_new_path_and_one_that_wraps_is_none() {
    for (jump, changes) in [(8_000 * 60, 1), (0, 0)] {
        let mut line = Line::new();
        for n in 0..40u64 {
            let timestamp = (u32::MAX - 2_000).wrapping_add((n * 160) as u32);
            let timestamp = if n < 20 { timestamp } else { timestamp.wrapping_add(jump) };
            let bytes = rtp(1, 65_530u16.wrapping_add(n as u16), timestamp, 0, &[0xff; 160]);
            line.take(|inbound, sink| inbound.handle(&bytes, Time::from_millis(1_020 + n * 20), sink));
        }
        let seen = line.seen.iter().filter(|seen| matches!(seen, Seen::Path(PathChange::Clock))).count();
        assert_eq!(seen, changes, "{:?}", line.seen);
        assert!(line.inbound.counts().used >= 40 - 1);
    }
}

#[test]
fn a_key_begins_at_its_timestamp_however_late_its_packets_come() {
    let mut line = Line::new();
    for n in 0..10 {
        line.packet(1, n, 1_020 + n * 20);
    }
    let end = rtp(1, 16, 10 * 160, 101, &[1, 0x8a, 4, 0]);
    line.take(|inbound, sink| inbound.handle(&end, Time::from_millis(1_420), sink));
    assert_eq!(line.seen, [Seen::Digit('1', 1_200.0)]);
}

#[test]
fn keys_of_another_stream_are_taken_without_leaving_ours() {
    let mut line = Line::new();
    for n in 0..10 {
        line.packet(1, n, 1_020 + n * 20);
        let key = rtp(9, n as u16, 5_000, 101, &[2, 10, 0, 160]);
        line.take(|inbound, sink| inbound.handle(&key, Time::from_millis(1_021 + n * 20), sink));
    }
    assert_eq!((line.seen.len(), line.inbound.ssrc(), line.given()), (1, Some(1), 10 * 320));
}

#[test]
fn keys_between_sound_leave_no_hole_in_the_order() {
    let mut line = Line::new();
    for n in 0..10u64 {
        let at = 1_020 + n * 20;
        let sound = rtp(1, (n * 2) as u16, (n * 160) as u32, 0, &[0x20; 160]);
        let key = rtp(1, (n * 2 + 1) as u16, 0, 101, &[5, 10, 0, (n * 16) as u8]);
        line.take(|inbound, sink| inbound.handle(&sound, Time::from_millis(at), sink));
        line.take(|inbound, sink| inbound.handle(&key, Time::from_millis(at), sink));
    }
    assert_eq!((line.given(), line.inbound.counts().used), (10 * 320, 10));
    assert_eq!(line.seen.len(), 1);
}

#[test]
fn an_outage_of_a_minute_is_skipped_and_told() {
    let mut line = Line::new();
    for n in 0..10 {
        line.packet(1, n, 1_020 + n * 20);
    }
    line.take(|inbound, sink| inbound.poll(Time::from_millis(61_220), sink));
    for n in 0..10 {
        line.packet(1, 3_010 + n, 61_220 + n * 20);
    }
    assert!(line.hidden() > 59_000.0);
    assert!(line.sound.len() < 16_000 * 3);
}

#[test]
fn an_hour_of_drift_makes_no_hole_and_no_step() {
    for ppm in [-100i64, 100] {
        let mut line = Line::new();
        for n in 0..60_000u64 {
            let at = 1_060_000 + (n * 60_000).cast_signed() * (1_000_000 - ppm) / 1_000_000;
            let at = Time::from_micros(at.unsigned_abs());
            let bytes = rtp(1, n as u16, (n * 480) as u32, 0, &[0xff; 480]);
            line.take(|inbound, sink| inbound.poll(at, sink));
            line.take(|inbound, sink| inbound.handle(&bytes, at, sink));
            line.sound.clear();
        }
        assert_eq!((line.seen.len(), line.inbound.counts().used), (0, 60_000), "{ppm} ppm");
        assert!(line.off < 0.2, "{ppm} ppm: {} ms", line.off);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn any_datagrams_are_taken_and_given_time_never_goes_back(
        steps in prop::collection::vec((0u64..400, 0u16..40, any::<bool>(), prop::collection::vec(any::<u8>(), 0..60)), 1..200),
    ) {
        let mut inbound = Inbound::new(TYPES).unwrap();
        let (mut now, mut last) = (1_000u64, 0.0);
        for (wait, sequence, wild, bytes) in steps {
            now += wait;
            let mut sink = |fact: InboundFact<'_>| if let InboundFact::Sound { start, samples } = fact {
                assert!(start.as_millis_f64() + 600.0 >= last, "{start} after {last}");
                last = start.as_millis_f64() + samples.len() as f64 / 16.0;
            };
            let timestamp = if wild { u32::from(bytes.first().copied().unwrap_or(0)) << 24 } else { (now * 8) as u32 };
            inbound.handle(&bytes, Time::from_millis(now), &mut sink);
            let packet = rtp(u32::from(sequence % 2), sequence, timestamp, [0, 13, 101, 8][usize::from(sequence % 4)], &bytes);
            inbound.handle(&packet, Time::from_millis(now), &mut sink);
            inbound.poll(Time::from_millis(now), &mut sink);
        }
    }
}

/// Plays 20 s of packets of which every ninth or so is lost, over a way that takes `trip` there and back and trembles by up
/// to 20 ms. Whoever asks for what is missing gets it a trip later. Gives what was made up, in ms, and what was asked for.
fn lossy(asks: bool, trip: u64) -> (u64, usize) {
    let mut line = Line::new();
    let (mut random, mut asked) = (0x5eed_u64, 0);
    let mut arriving: Vec<(u64, u64)> = Vec::new();
    for n in 0..1_000_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (lost, tremble) = ((random >> 33).is_multiple_of(9), (random >> 50) % 4 * 5);
        if !lost {
            arriving.push((1_020 + n * 20 + trip / 2 + tremble, n));
        }
    }
    for now in (1_000..21_500).step_by(5) {
        line.take(|inbound, sink| inbound.poll(Time::from_millis(now), sink));
        let came: Vec<(u64, u64)> = arriving.iter().copied().filter(|(at, _)| *at <= now).collect();
        arriving.retain(|(at, _)| *at > now);
        for (_, n) in came {
            line.packet(1, n, now);
            let missing = line.inbound.missing(Time::from_millis(now), Duration::from_millis(trip));
            asked += missing.len();
            if asks {
                arriving.extend(missing.iter().map(|hole| (now + trip, u64::from(*hole))));
            }
        }
    }
    (line.inbound.counts().concealed / 8, asked)
}

#[test]
fn what_is_asked_for_in_time_need_not_be_made_up() {
    let (without, _) = lossy(false, 15);
    let (with, asked) = lossy(true, 15);
    println!("made up: {without} ms without, {with} ms with {asked} packets asked for");
    assert!(without > 1_500, "{without}");
    assert!(with * 4 < without, "{with} of {without}");
    // Some were only late.
    assert!(asked < 400, "{asked}");
}

#[test]
fn what_would_come_too_late_is_not_asked_for() {
    assert_eq!(lossy(true, 400).1, 0);
    let mut line = Line::new();
    for n in [0, 1, 2, 6] {
        line.packet(1, n, 1_020 + n * 20);
    }
    let now = Time::from_millis(1_140);
    // The first of them is late already; each is named once.
    assert_eq!(line.inbound.missing(now, Duration::from_millis(5)), [4, 5]);
    assert!(line.inbound.missing(now, Duration::from_millis(5)).is_empty());
    assert!(Inbound::new(TYPES).unwrap().missing(now, Duration::ZERO).is_empty());
}
