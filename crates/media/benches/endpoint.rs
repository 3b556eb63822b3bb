//! How often does the end-of-turn model agree with real people, and how long does it take?
//!
//! `cargo bench -p sayback-media --bench endpoint -- FOLDER` takes the recordings of a folder, whole (the end of a
//! turn) and cut at 55 % of their voice (not one), each followed by 200 ms of quiet. `SAYBACK_END_OF_TURN` names the
//! model.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::{Path, PathBuf};

use sayback_media::noise::WhiteNoise;
use sayback_media::{EndOfTurn, pcm, read_audio};

fn main() {
    let folder = std::env::args().skip(1).find(|a| !a.starts_with('-')).map(PathBuf::from);
    let (Some(folder), Some(model)) = (folder, std::env::var_os("SAYBACK_END_OF_TURN")) else {
        println!("nothing to do: give a folder of recordings, and the model in SAYBACK_END_OF_TURN");
        return;
    };
    let model = EndOfTurn::load(Path::new(&model), 1).expect("SAYBACK_END_OF_TURN names the model");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .filter_map(|e| Some(e.ok()?.path()))
        .collect();
    paths.sort();
    let mut tally = Tally::default();
    for path in &paths {
        let Some(sound) = read_audio(path).ok().and_then(|clip| clip.mono_at(16_000).ok()) else { continue };
        let voice = voice(&sound);
        if voice.len() < 12_800 {
            continue;
        }
        let whole = tally.ask(&model, voice);
        let cut = tally.ask(&model, &voice[..voice.len() * 55 / 100]);
        tally.note(whole, cut);
        println!("{:5.2} {:5.2}  {}", whole, cut, path.file_name().unwrap_or_default().display());
    }
    tally.print();
}

/// The part between the first and the last 20 ms within 35 dB of the loudest.
fn voice(sound: &[f32]) -> &[f32] {
    let levels: Vec<f32> = sound.chunks(320).map(pcm::level_dbfs).collect();
    let loudest = levels.iter().copied().fold(pcm::SILENCE_DBFS, f32::max);
    let loud = |level: &f32| *level > loudest - 35.0;
    match (levels.iter().position(loud), levels.iter().rposition(loud)) {
        (Some(first), Some(last)) => &sound[first * 320..((last + 1) * 320).min(sound.len())],
        _ => &[],
    }
}

#[derive(Default)]
struct Tally {
    recordings: usize,
    whole_accepted: usize,
    cut_accepted: usize,
    asked: u32,
    seconds: f64,
}

impl Tally {
    fn ask(&mut self, model: &EndOfTurn, voice: &[f32]) -> f32 {
        let mut sound = voice.to_vec();
        sound.extend(WhiteNoise::new(1).samples(3_200, -65.0));
        let start = cpu_seconds();
        let probability = model.probability(&sound).expect("the model works");
        self.seconds += cpu_seconds() - start;
        self.asked += 1;
        probability
    }

    fn note(&mut self, whole: f32, cut: f32) {
        self.recordings += 1;
        self.whole_accepted += usize::from(whole > 0.5);
        self.cut_accepted += usize::from(cut > 0.5);
    }

    fn print(&self) {
        println!(
            "{} recordings: whole ones taken as ended {}, cut ones held back {}; {:.1} ms of CPU a decision",
            self.recordings,
            self.whole_accepted,
            self.recordings - self.cut_accepted,
            self.seconds * 1_000.0 / f64::from(self.asked.max(1)),
        );
    }
}

/// CPU time of this process so far in seconds, all its threads: on a shared machine the clock on the wall says little.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold blanks; user and system time are the 12th and 13th field after it, in 1/100 s.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}
