//! A device that was lost: when it is tried again, and which one is taken instead.

use std::time::Duration;

use sayback_core::Time;

use super::device::DeviceChoice;
use super::error::MicError;

/// How long a lost device is left alone before it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The device that is wanted in one direction, and when it is tried next. The same for both directions.
#[derive(Clone, Debug)]
pub(super) struct Reopening {
    choice: DeviceChoice,
    at: Time,
}

impl Reopening {
    pub(super) fn new(choice: DeviceChoice) -> Self {
        Self { choice, at: Time::ZERO }
    }

    pub(super) fn choice(&self) -> DeviceChoice {
        self.choice.clone()
    }

    pub(super) fn on_lost(&mut self, now: Time) {
        self.at = now + RETRY;
    }

    /// Once it is time: the chosen device if it is there again, else the default one. Gives what `open` calls it.
    pub(super) fn attempt(
        &mut self,
        now: Time,
        mut open: impl FnMut(&DeviceChoice) -> Result<String, MicError>,
    ) -> Option<String> {
        if now < self.at {
            return None;
        }
        let opened = open(&self.choice).or_else(|_| open(&DeviceChoice::default()));
        if opened.is_err() {
            self.on_lost(now);
        }
        opened.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone() -> MicError {
        MicError::CannotOpen { name: "Desk".to_owned(), direction: "input", reason: "unplugged".to_owned() }
    }

    #[test]
    fn a_lost_device_is_tried_every_second_and_the_default_stands_in() {
        let mut reopening =
            Reopening::new(DeviceChoice { name: Some("Desk".to_owned()), ..DeviceChoice::default() });
        reopening.on_lost(Time::from_millis(500));
        let mut tried = Vec::new();
        for at in [600, 1_499, 1_500, 1_600, 2_499, 2_500] {
            let back = reopening.attempt(Time::from_millis(at), |choice| {
                tried.push((at, *choice == DeviceChoice::default()));
                if at < 2_500 || *choice != DeviceChoice::default() {
                    Err(gone())
                } else {
                    Ok("Built-in".to_owned())
                }
            });
            assert_eq!(back.is_some(), at == 2_500, "at {at}");
        }
        assert_eq!(tried, [(1_500, false), (1_500, true), (2_500, false), (2_500, true)]);
    }
}
