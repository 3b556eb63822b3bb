//! Key presses as RTP (RFC 4733), in all the ways telephones send them.
//!
//! One press is many packets with one timestamp. It counts once, at the first of its packets that comes, and it began
//! at its timestamp: the marker bit may be missing, the end may be lost, or only the end may come. A press longer
//! than 65,535 ticks goes on in a second segment whose timestamp lies where the first one ended.

/// Packets of one press are never this far apart, in ticks of an 8,000 Hz clock: later ones are another press.
const APART: u64 = 8_000;
/// A sender that (wrongly) moves the timestamp with every packet moves it by no more than this.
const CREEP: u64 = 1_600;

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Press {
    /// `0`-`9`, `*`, `#`, `A`-`D`.
    pub digit: char,
    /// The timestamp at which the key went down.
    pub timestamp: u64,
}

/// Tells presses apart.
#[derive(Clone, Debug, Default)]
pub struct Digits {
    last: Option<Current>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    digit: char,
    timestamp: u64,
    /// Up to where the press is known to last.
    until: u64,
    ended: bool,
}

impl Digits {
    /// Nothing was pressed yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the payload of an event packet; gives a press when its first packet is seen.
    pub fn handle(&mut self, timestamp: u64, payload: &[u8]) -> Option<Press> {
        let [event, flags, high, low, ..] = *payload else { return None };
        let digit = digit(event)?;
        let duration = u64::from(u16::from_be_bytes([high, low]));
        let ended = flags & 0x80 != 0;
        let until = timestamp + duration;
        if let Some(last) = &mut self.last {
            if timestamp == last.timestamp && digit == last.digit {
                last.until = last.until.max(until);
                last.ended |= ended;
                return None;
            }
            if timestamp < last.timestamp {
                // Late or repeated: its press has been counted, or was overtaken by another.
                return None;
            }
            if last.is_continued_by(digit, timestamp) {
                (last.timestamp, last.until, last.ended) = (timestamp, until, ended);
                return None;
            }
        }
        self.last = Some(Current { digit, timestamp, until, ended });
        Some(Press { digit, timestamp })
    }

    /// The stream's clock began anew: what comes now is no part of what was.
    pub fn restart(&mut self) {
        self.last = None;
    }
}

impl Current {
    /// A next segment of a long press, or the press of a sender whose timestamp creeps.
    fn is_continued_by(&self, digit: char, timestamp: u64) -> bool {
        let segment = timestamp.abs_diff(self.until) <= 1 && self.until - self.timestamp > APART;
        let creeping =
            timestamp - self.timestamp <= CREEP && timestamp <= self.until.max(self.timestamp + CREEP / 4);
        digit == self.digit && !self.ended && (segment || creeping)
    }
}

/// The digit of an event code; the others (flash, tones) are no keys.
pub fn digit(event: u8) -> Option<char> {
    "0123456789*#ABCD".chars().nth(usize::from(event))
}

/// The event code of a digit.
pub fn event(digit: char) -> Option<u8> {
    let place = "0123456789*#ABCD".chars().position(|known| known == digit.to_ascii_uppercase())?;
    u8::try_from(place).ok()
}

/// A digit in the body of a SIP INFO: `application/dtmf-relay` has `Signal=5`, `application/dtmf` the digit alone.
pub fn digit_of_info(content_type: &str, body: &str) -> Option<char> {
    let signal = if content_type.to_ascii_lowercase().contains("dtmf-relay") {
        body.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            key.trim().eq_ignore_ascii_case("signal").then_some(value)
        })?
    } else {
        body
    };
    let signal = signal.trim();
    let named = match signal.parse::<u8>() {
        Ok(code) if signal.len() == 2 => digit(code),
        Ok(_) | Err(_) => None,
    };
    let single = signal.chars().next().filter(|_| signal.chars().count() == 1);
    named.or_else(|| single.and_then(event).and_then(digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The packets of a press: duration in steps of 160, then the end three times.
    fn packets(event: u8, timestamp: u64, steps: u16) -> Vec<(u64, [u8; 4])> {
        let at = |duration: u16, end: u8| {
            let [high, low] = duration.to_be_bytes();
            (timestamp, [event, end | 10, high, low])
        };
        let mut all: Vec<_> = (1..=steps).map(|step| at(step * 160, 0)).collect();
        all.extend([at((steps + 1) * 160, 0x80); 3]);
        all
    }

    fn presses(digits: &mut Digits, packets: &[(u64, [u8; 4])]) -> Vec<Press> {
        packets.iter().filter_map(|(at, payload)| digits.handle(*at, payload)).collect()
    }

    #[test]
    fn a_press_counts_once_whatever_is_lost_of_it() {
        let all = packets(5, 1_000, 6);
        let whole = Press { digit: '5', timestamp: 1_000 };
        for from in 0..all.len() {
            for to in from + 1..=all.len() {
                assert_eq!(presses(&mut Digits::new(), &all[from..to]), [whole], "{from}..{to}");
            }
        }
    }

    #[test]
    fn the_same_key_twice_counts_twice() {
        let mut digits = Digits::new();
        let mut all = packets(1, 1_000, 3);
        all.extend(packets(1, 2_200, 3));
        assert_eq!(presses(&mut digits, &all).len(), 2);
    }

    #[test]
    fn the_same_key_twice_counts_twice_though_no_end_of_the_first_came() {
        let mut all = packets(1, 1_000, 3);
        all.truncate(3);
        all.extend(packets(1, 3_000, 3));
        assert_eq!(presses(&mut Digits::new(), &all).len(), 2);
    }

    #[test]
    fn a_long_press_in_two_segments_is_one() {
        let mut digits = Digits::new();
        let first = (500, [7, 10, 0xff, 0xff]);
        let second = (500 + 0xffff, [7, 10, 0, 160]);
        let end = (500 + 0xffff, [7, 0x8a, 1, 0x40]);
        assert_eq!(presses(&mut digits, &[first, second, end]), [Press { digit: '7', timestamp: 500 }]);
    }

    #[test]
    fn a_sender_whose_timestamp_creeps_is_understood() {
        let all: Vec<_> = (0..8u64).map(|n| (1_000 + n * 160, [3, 10, 0, 160])).collect();
        assert_eq!(presses(&mut Digits::new(), &all).len(), 1);
    }

    #[test]
    fn late_packets_of_an_earlier_press_do_not_count_again() {
        let (first, second) = (packets(1, 1_000, 3), packets(2, 3_000, 3));
        let mut all = second.clone();
        all.splice(0..0, first.clone());
        all.extend(first);
        assert_eq!(presses(&mut Digits::new(), &all).len(), 2);
    }

    #[test]
    fn flash_and_short_payloads_are_no_keys() {
        let mut digits = Digits::new();
        assert_eq!(digits.handle(0, &[16, 0x80, 0, 160]), None);
        assert_eq!(digits.handle(0, &[1, 0x80, 0]), None);
        assert_eq!(digits.handle(0, &[11, 0x80, 0, 160]), Some(Press { digit: '#', timestamp: 0 }));
    }

    #[test]
    fn digits_in_info_bodies_are_found() {
        assert_eq!(digit_of_info("application/dtmf-relay", "Signal= 1\r\nDuration= 160\r\n"), Some('1'));
        assert_eq!(digit_of_info("application/dtmf-relay", "Signal=10\r\n"), Some('*'));
        assert_eq!(digit_of_info("application/dtmf", "#"), Some('#'));
        assert_eq!(digit_of_info("application/dtmf", "12345"), None);
        assert_eq!(digit_of_info("application/dtmf-relay", "Duration=160"), None);
    }

    proptest! {
        #[test]
        fn any_payloads_are_taken(packets in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..8)), 0..40)) {
            let mut digits = Digits::new();
            for (timestamp, payload) in packets {
                let _ = digits.handle(u64::from(timestamp), &payload);
            }
        }

        #[test]
        fn any_info_body_is_taken(kind in ".{0,40}", body in "(?s).{0,80}") {
            let _ = digit_of_info(&kind, &body);
        }
    }
}
