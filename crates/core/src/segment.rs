//! Caller sound: cutting frames into segments, and what is known about each.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::VoiceFrame;
use crate::ids::SegmentId;
use crate::time::{Interval, Time};

/// How frames are cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SegmenterSettings {
    /// Percent from which a frame counts as speech.
    pub start_percent: u8,
    /// Percent below which a frame counts as quiet. Between the two, whatever was goes on.
    pub end_percent: u8,
    /// Frames of speech in a row that start a segment.
    pub start_frames: u8,
    /// Quiet that ends one.
    pub hangover: Duration,
    /// Percent from which a frame is a sign of sound, for the quiet before a run.
    pub sign_percent: u8,
}

impl Default for SegmenterSettings {
    fn default() -> Self {
        Self {
            start_percent: 50,
            end_percent: 35,
            start_frames: 2,
            hangover: Duration::from_millis(200),
            sign_percent: 30,
        }
    }
}

/// What cutting found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Speech began.
    Started(Interval),
    /// It ended at this time.
    Ended(Time),
}

/// Cuts frames into segments. Keeps nothing but the run that is going on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Segmenter {
    settings: SegmenterSettings,
    /// Onset of the speech frames in a row, while no segment is open yet.
    candidate: Option<(Interval, u8)>,
    /// End of the last speech frame of the open segment.
    open: Option<Time>,
    /// End of the last frame with any sign of speech.
    pub(crate) last_sign: Option<Time>,
    /// Voiced length of the open segment or the candidate.
    pub(crate) voiced: Duration,
    /// The highest percentage of its frames.
    surest: u8,
}

/// A frame of a voice scores this much within its first 100 ms; music and the babble of a room stay below.
const SURE_PERCENT: u8 = 80;
/// What is never sure must last so much longer to be taken for somebody who wants to speak.
const UNSURE_LONGER: Duration = Duration::from_millis(160);

impl Segmenter {
    /// Takes a frame.
    pub(crate) fn frame(&mut self, frame: &VoiceFrame) -> Option<Cut> {
        let settings = self.settings;
        let speech = frame.speech >= settings.start_percent;
        if frame.speech >= settings.sign_percent {
            self.last_sign = Some(frame.end);
        }
        let Some(last) = self.open else {
            return self.before_segment(frame, speech);
        };
        if speech {
            self.voice(frame);
        }
        if speech || frame.speech >= settings.end_percent {
            self.open = Some(frame.end);
            return None;
        }
        if frame.end.since(last) < settings.hangover {
            return None;
        }
        self.open = None;
        self.silence();
        Some(Cut::Ended(last))
    }

    /// Whether what sounds now is so much voiced speech that it interrupts. Sound that the detector is in two minds
    /// about throughout must last longer: music does not stop the agent, and nor do people in the background.
    pub(crate) fn interrupts(&self, threshold: Duration) -> bool {
        let longer = if self.surest >= SURE_PERCENT { Duration::ZERO } else { UNSURE_LONGER };
        self.voiced >= threshold + longer
    }

    fn voice(&mut self, frame: &VoiceFrame) {
        self.voiced += frame.end.since(frame.start);
        self.surest = self.surest.max(frame.speech);
    }

    fn silence(&mut self) {
        (self.voiced, self.surest) = (Duration::ZERO, 0);
    }

    /// Ends whatever is open; gives the end of its last speech frame.
    pub(crate) fn close(&mut self) -> Option<Time> {
        self.candidate = None;
        self.silence();
        self.open.take()
    }

    fn before_segment(&mut self, frame: &VoiceFrame, speech: bool) -> Option<Cut> {
        if !speech {
            self.candidate = None;
            self.silence();
            return None;
        }
        let (onset, frames) =
            // The sound of a frame may begin anywhere in it.
            self.candidate.unwrap_or((Interval::new(frame.rise.min(frame.start), frame.end), 0));
        let frames = frames.saturating_add(1);
        self.voice(frame);
        if frames < self.settings.start_frames {
            self.candidate = Some((onset, frames));
            return None;
        }
        self.candidate = None;
        self.open = Some(frame.end);
        Some(Cut::Started(onset))
    }
}

/// What the recogniser made of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Words {
    /// Nothing yet.
    Awaited,
    /// There were none.
    None,
    /// These.
    Text(String),
    /// Nothing came in time: there may have been words.
    Unknown,
}

/// One stretch of caller sound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Segment {
    pub(crate) id: SegmentId,
    pub(crate) onset: Interval,
    pub(crate) offset: Option<Time>,
    /// When it was noticed that it ended: the recogniser's limit runs from here.
    pub(crate) closed_at: Option<Time>,
    pub(crate) words: Words,
    /// When its words became known.
    pub(crate) resolved_at: Option<Time>,
    /// A partial transcript had words.
    pub(crate) partial: bool,
    /// The agent's own sound.
    pub(crate) echo: bool,
    /// Sounded while the agent's speech did.
    pub(crate) over_speech: bool,
    /// Its words have been used: in a turn, as context, or as an answer.
    pub(crate) taken: bool,
    /// The end-of-turn model's opinion after it, in percent.
    pub(crate) ended_percent: Option<u8>,
    /// The recogniser's confidence in its words, in percent.
    pub(crate) confidence: Option<u8>,
    /// The recogniser wrote something that nobody said: music, a stock phrase, another language.
    pub(crate) phantom: bool,
    /// Level in dB of full scale, and how many people spoke, where measured.
    pub(crate) level_db: Option<i16>,
    pub(crate) speakers: Option<u8>,
}

impl Segment {
    pub(crate) fn new(id: SegmentId, onset: Interval) -> Self {
        Self {
            id,
            onset,
            offset: None,
            closed_at: None,
            words: Words::Awaited,
            resolved_at: None,
            partial: false,
            echo: false,
            over_speech: false,
            taken: false,
            ended_percent: None,
            confidence: None,
            phantom: false,
            level_db: None,
            speakers: None,
        }
    }

    /// Still sounding, or its words are not known yet.
    pub(crate) fn unresolved(&self) -> bool {
        !self.echo && (self.offset.is_none() || self.words == Words::Awaited)
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.words {
            Words::Text(text) if !self.echo => Some(text),
            Words::Text(_) | Words::Awaited | Words::None | Words::Unknown => None,
        }
    }

    /// Had words, or may have had.
    pub(crate) fn may_have_words(&self) -> bool {
        !self.echo && matches!(self.words, Words::Text(_) | Words::Unknown)
    }
}

/// The segments of a call, oldest first; old ones that nothing depends on are let go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Segments {
    list: Vec<Segment>,
}

/// More than this many resolved and used segments are not kept.
const KEEP: usize = 64;

impl Segments {
    pub(crate) fn add(&mut self, segment: Segment) {
        if self.list.len() >= KEEP
            && let Some(at) = self.list.iter().position(|s| !s.unresolved() && s.taken)
        {
            self.list.remove(at);
        }
        self.list.push(segment);
    }

    pub(crate) fn get(&self, id: SegmentId) -> Option<&Segment> {
        self.list.iter().find(|segment| segment.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: SegmentId) -> Option<&mut Segment> {
        self.list.iter_mut().find(|segment| segment.id == id)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.list.iter_mut()
    }

    /// The segment that sounds now.
    pub(crate) fn sounding(&self) -> Option<&Segment> {
        self.list.iter().rev().find(|segment| segment.offset.is_none() && !segment.echo)
    }

    pub(crate) fn any_unresolved(&self) -> bool {
        self.list.iter().any(Segment::unresolved)
    }

    /// When the words of the last segment became known, or that it had none.
    pub(crate) fn last_resolved(&self) -> Option<Time> {
        self.list.iter().filter_map(|s| s.resolved_at).max()
    }

    /// The end of the last sound, or `None` if there was none.
    pub(crate) fn last_offset(&self) -> Option<Time> {
        self.list.iter().filter(|s| !s.echo).filter_map(|s| s.offset).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(index: u64, speech: u8) -> VoiceFrame {
        let start = Time::from_millis(index * 32);
        VoiceFrame {
            start,
            end: Time::from_millis((index + 1) * 32),
            speech,
            rise: start - Duration::from_millis(30),
        }
    }

    #[test]
    fn a_segment_keeps_its_retroactive_onset_and_true_offset() {
        let mut cutter = Segmenter::default();
        let cuts: Vec<Cut> = (0..30)
            .filter_map(|i| cutter.frame(&frame(i, if (5..12).contains(&i) { 90 } else { 2 })))
            .collect();
        assert_eq!(cuts.len(), 2);
        assert_eq!(
            cuts.first(),
            Some(&Cut::Started(Interval::new(Time::from_millis(130), Time::from_millis(192))))
        );
        assert_eq!(cuts.get(1), Some(&Cut::Ended(Time::from_millis(12 * 32))));
    }

    /// How many frames of the score it takes to interrupt, given a threshold of 96 ms.
    fn frames_to_interrupt(scores: &[u8]) -> Option<usize> {
        let mut cutter = Segmenter::default();
        scores.iter().enumerate().position(|(i, score)| {
            cutter.frame(&frame(i as u64, *score));
            cutter.interrupts(Duration::from_millis(96))
        })
    }

    #[test]
    fn a_voice_interrupts_after_its_third_frame_and_what_may_be_music_after_its_eighth() {
        // The first frames of a real "no", and of real hold music.
        assert_eq!(frames_to_interrupt(&[60, 94, 99, 99]), Some(2));
        assert_eq!(frames_to_interrupt(&[68, 75, 69, 70, 54, 53, 41, 35, 32, 20, 20, 10]), None);
        assert_eq!(frames_to_interrupt(&[60; 12]), Some(7));
        // One sure frame is enough, whenever it comes; those of the sound before do not count.
        assert_eq!(frames_to_interrupt(&[55, 60, 60, 60, 85]), Some(4));
        let mut scores = alloc::vec![99, 99];
        scores.extend([0; 8]);
        scores.extend([60; 6]);
        assert_eq!(frames_to_interrupt(&scores), None);
    }

    #[test]
    fn one_loud_frame_is_no_segment() {
        let mut cutter = Segmenter::default();
        assert!((0..20).all(|i| cutter.frame(&frame(i, if i == 7 { 99 } else { 1 })).is_none()));
    }
}
