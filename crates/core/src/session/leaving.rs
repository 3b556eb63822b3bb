//! Handing the caller over, and who is never kept from it.

use alloc::format;
use alloc::string::String;

use crate::command::DropReason;
use crate::event::ToolCall;
use crate::session::Session;

/// Numbers of police, fire brigade and ambulance that are no extension of anybody's office.
const EMERGENCY: [&str; 18] = [
    "112", "911", "999", "000", "110", "111", "113", "114", "115", "117", "118", "119", "144", "190", "192",
    "193", "108", "061",
];

impl Session {
    /// The caller goes to somebody else: a question that is still open goes with the call, and is named in the handover
    /// (VC-23).
    pub(crate) fn drop_for_transfer(&mut self) {
        if let Some(hold) = self.gate.open() {
            self.line.dropped = Some(hold.question.clone());
        }
        self.close_hold(DropReason::Cancelled);
    }
}

/// Whether a transfer is one that no question may stand in the way of: to an emergency number, or one that the model
/// says the caller asked for (VC-85). Wrongly taken for one it costs a question, never a run.
pub(crate) fn is_never_refused(call: &ToolCall) -> bool {
    let Ok(input) = serde_json::from_str::<serde_json::Value>(&call.input) else { return false };
    let Some(fields) = input.as_object() else { return false };
    let asked = fields.get("caller_asked") == Some(&serde_json::Value::Bool(true));
    asked || fields.values().filter_map(|value| value.as_str()).any(is_emergency)
}

/// Whether this is an emergency number: one that callers are sent to whatever else stands in the way (VC-85).
///
/// `112`, `tel:112`, `sip:911@example.com`, `urn:service:sos.fire`.
pub fn is_emergency(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    if text.starts_with("urn:service:sos") {
        return true;
    }
    let number =
        ["tel:", "sips:", "sip:"].iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(&text);
    let number = number.split(['@', ';']).next().unwrap_or(number);
    let digits: String = number.chars().filter(|c| !matches!(c, ' ' | '-' | '.')).collect();
    EMERGENCY.contains(&digits.as_str())
}

/// What the model is told if it asks while the caller is on their way to somebody else.
pub(crate) fn being_handed_over(tool: &str) -> String {
    format!(
        "{tool} was not asked about and did not run: the caller is being handed over. Call it again if the transfer \
         fails."
    )
}

/// What the model is told if it asks on a call that nobody has answered yet (VC-84).
pub(crate) fn nobody_answered(tool: &str) -> String {
    format!(
        "{tool} was not asked about and did not run: no person has answered this call yet. Call it again once \
         somebody speaks with you."
    )
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::ids::CallId;

    #[test]
    fn vc_85_emergency_numbers_are_known_in_every_writing() {
        let to = |input: &str| {
            let id = CallId("c1".to_string());
            is_never_refused(&ToolCall { id, name: "transfer_call".to_string(), input: input.to_string() })
        };
        for urgent in ["112", "1 1 2", "tel:911", "sip:999@example.com;user=phone", "urn:service:sos.fire"] {
            assert!(to(&format!("{{\"to\":\"{urgent}\"}}")), "{urgent}");
        }
        assert!(to("{\"to\":\"sales\",\"caller_asked\":true}"));
        for plain in ["1120", "0911", "sales", "+49112", "sip:desk@911.example.com"] {
            assert!(!to(&format!("{{\"to\":\"{plain}\"}}")), "{plain}");
        }
        assert!(!to("{\"to\":\"sales\",\"caller_asked\":\"true\"}") && !to("112") && !to("{"));
    }
}
