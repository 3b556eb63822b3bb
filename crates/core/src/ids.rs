//! Newtypes for every id, so that none can stand in for another.

use alloc::string::String;
use core::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! numeric_id {
    ($(#[$doc:meta] $name:ident $prefix:literal),* $(,)?) => {$(
        #[$doc]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let number = text.strip_prefix($prefix).and_then(|digits| digits.parse().ok());
                number.map($name).ok_or_else(|| D::Error::custom(concat!("expected an id like ", $prefix, "01")))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:02}"), self.0)
            }
        }
    )*};
}

numeric_id! {
    /// One stretch of caller sound, as voice activity detection cut it out.
    SegmentId "s_",
    /// One piece of agent speech handed to the voice.
    UtteranceId "u_",
    /// One request to the language model.
    GenerationId "g_",
    /// One held call waiting for the caller's yes.
    HoldId "h_",
    /// One short call that asks the model what the caller answered.
    CheckId "c_",
    /// One approval asked of an operator or an app.
    ApprovalId "a_",
}

/// The model's own id of a tool call, unique within a conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
