//! `sayback talk`, sound to sound: a recorded caller on virtual devices, and what was heard held against the event log.

#![cfg(feature = "mic")]
#![expect(clippy::unwrap_used, reason = "a test of its own crate")]

mod support;

use std::time::Duration;

use sayback_media::audible::AudibleTracker;
use sayback_rig::{Rig, inside};
use sayback_runtime::clock::Clock;
use serde_json::json;
use support::{Call, Phone, booking, has_models, recorded};

/// The call up to the moment when the question begins to sound.
fn asked(rig: &Rig) -> (Call, Phone) {
    let clock = Clock::start();
    let mut phone = Phone::new(clock);
    let script = [booking(), json!({"say": "All right."}), json!({"verdict": "yes"}), json!({"say": "Anything else?"})];
    let mut call = Call::start(rig, clock, &script);
    call.until("agent.heard");
    phone.say(&recorded("book.wav"));
    call.until("question.started");
    (call, phone)
}

#[test]
fn a_yes_after_the_question_runs_the_tool() {
    inside("a_yes_after_the_question_runs_the_tool", |rig| {
        if !has_models() {
            return;
        }
        let (mut call, mut phone) = asked(rig);
        call.until("question.heard");
        phone.say(&recorded("yes.wav"));
        let ran = call.until_any(&["tool.started", "question.dropped"]);
        println!("{}", call.story());
        assert_eq!(ran["event"], "tool.started");
    });
}
