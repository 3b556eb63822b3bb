//! `sayback doctor`: what works here, what is missing, and the command that mends it.

use sayback_providers::local_llm::find_program;
use sayback_providers::models::Manifest;

use crate::exit::{MISSING, Stop};

pub(crate) fn run() -> Result<u8, Stop> {
    let mut missing = 0;
    let mut say = |works: bool, what: &str, mend: &str| {
        missing += u8::from(!works);
        out!(
            "{} {what}{}",
            if works { "ok     " } else { "missing" },
            if works { String::new() } else { format!("\n        mend: {mend}") }
        );
    };
    let manifest = Manifest::load().map_err(Stop::unusable)?;
    for model in manifest.list() {
        let here = manifest.is_present(&model.name).map_err(Stop::unusable)?;
        say(
            here,
            &format!("model {} ({})", model.name, model.role),
            &format!("sayback models fetch {}", model.name),
        );
    }
    let espeak = std::process::Command::new("espeak-ng").arg("--version").output().is_ok();
    say(espeak, "espeak-ng, which gives the voice its phonemes", "apt-get install espeak-ng");
    say(find_program().is_ok(), "the local language model's program", "scripts/setup --llm");
    #[cfg(feature = "mic")]
    {
        use sayback_transports::mic::{Direction, devices};
        let found = devices().unwrap_or_default();
        for direction in [Direction::Input, Direction::Output] {
            let any = found.iter().any(|device| device.direction == direction && device.problem.is_none());
            say(
                any,
                &format!("a device for {direction:?}"),
                "plug one in; `sayback devices` lists what is there",
            );
        }
    }
    out!("{missing} missing");
    Ok(if missing > 0 { MISSING } else { 0 })
}
