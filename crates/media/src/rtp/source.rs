//! Which stream, and which place in it: sequence numbers and timestamps without their wraps.

/// A jump of sequence numbers up to here is loss; beyond it the sender has probably begun anew (RFC 3550, A.1).
const MAX_DROPOUT: i32 = 3_000;
/// A packet this far behind is late; beyond it the sender has probably begun anew.
const MAX_MISORDER: i32 = 200;

/// A place that is counted on over its wraps. Starts far from zero, so that what came before the first can be told.
const START: u64 = 1 << 32;

/// Where a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// At these places in the stream.
    Here {
        /// Its sequence number.
        sequence: u64,
        /// Its timestamp.
        timestamp: u64,
    },
    /// At these places in a stream that begins with it: another SSRC, or a sender that began anew.
    Anew {
        /// Its sequence number.
        sequence: u64,
        /// Its timestamp.
        timestamp: u64,
    },
    /// It is the first sign of a new stream; one more is wanted, since a single stray packet must not end the old one.
    Unsure,
}

/// The stream that a call's sound comes in.
#[derive(Clone, Debug, Default)]
pub struct Source {
    now: Option<Stream>,
    /// The next packet that would prove a new stream: its SSRC and sequence number.
    candidate: Option<(u32, u16)>,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    ssrc: u32,
    sequence: u64,
    timestamp: u64,
}

impl Source {
    /// Nothing came yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The stream's SSRC, once there is one.
    pub fn ssrc(&self) -> Option<u32> {
        self.now.map(|stream| stream.ssrc)
    }

    /// Places a packet.
    pub fn place(&mut self, ssrc: u32, sequence: u16, timestamp: u32) -> Placed {
        let Some(stream) = &mut self.now else { return self.begin(ssrc, sequence, timestamp) };
        let ahead = i32::from(sequence.wrapping_sub(stream.sequence as u16).cast_signed());
        if stream.ssrc != ssrc || !(-MAX_MISORDER..=MAX_DROPOUT).contains(&ahead) {
            if self.candidate == Some((ssrc, sequence)) {
                return self.begin(ssrc, sequence, timestamp);
            }
            self.candidate = Some((ssrc, sequence.wrapping_add(1)));
            return Placed::Unsure;
        }
        self.candidate = None;
        let place = stream.sequence.saturating_add_signed(i64::from(ahead));
        let ticks = timestamp.wrapping_sub(stream.timestamp as u32).cast_signed();
        let time = stream.timestamp.saturating_add_signed(i64::from(ticks));
        if place > stream.sequence {
            (stream.sequence, stream.timestamp) = (place, time);
        }
        Placed::Here { sequence: place, timestamp: time }
    }

    /// The sender's clock has jumped: the stream goes on from here.
    pub fn restart(&mut self, ssrc: u32, sequence: u16, timestamp: u32) -> Placed {
        self.begin(ssrc, sequence, timestamp)
    }

    fn begin(&mut self, ssrc: u32, sequence: u16, timestamp: u32) -> Placed {
        let (sequence, timestamp) = (START + u64::from(sequence), START + u64::from(timestamp));
        self.now = Some(Stream { ssrc, sequence, timestamp });
        self.candidate = None;
        Placed::Anew { sequence, timestamp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(placed: Placed) -> (u64, u64) {
        match placed {
            Placed::Here { sequence, timestamp } => (sequence, timestamp),
            Placed::Anew { .. } | Placed::Unsure => panic!("{placed:?}"),
        }
    }

    #[test]
    fn numbers_go_on_over_their_wraps() {
        let mut source = Source::new();
        source.place(1, 65_534, u32::MAX - 100);
        let (a, at) = here(source.place(1, 65_535, u32::MAX));
        let (b, bt) = here(source.place(1, 0, 59));
        assert_eq!((b - a, bt - at), (1, 60));
        let (late, _) = here(source.place(1, 65_535, u32::MAX));
        assert_eq!(late, a);
    }

    #[test]
    fn a_stray_packet_of_another_stream_changes_nothing() {
        let mut source = Source::new();
        source.place(1, 10, 0);
        assert_eq!(source.place(2, 500, 0), Placed::Unsure);
        here(source.place(1, 11, 160));
        assert_eq!(source.place(2, 501, 160), Placed::Unsure);
        assert_eq!(source.ssrc(), Some(1));
    }

    #[test]
    fn two_in_a_row_of_another_stream_are_the_new_one() {
        let mut source = Source::new();
        source.place(1, 10, 0);
        source.place(2, 500, 7_000);
        assert!(matches!(source.place(2, 501, 7_160), Placed::Anew { .. }));
        assert_eq!(source.ssrc(), Some(2));
    }

    #[test]
    fn a_great_jump_of_sequence_numbers_is_a_sender_that_began_anew() {
        let mut source = Source::new();
        source.place(1, 10, 0);
        assert_eq!(source.place(1, 20_000, 160), Placed::Unsure);
        assert!(matches!(source.place(1, 20_001, 320), Placed::Anew { .. }));
        here(source.place(1, 20_003, 640));
    }
}
