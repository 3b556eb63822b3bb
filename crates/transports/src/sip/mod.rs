//! Telephone calls: SIP signalling, RTP sound.
//!
//! ```text
//! INVITE ─▶ who is it (trunk, user) ─▶ room? who answers? (switchboard) ─▶ offer/answer ─▶ 200
//!                                                                                        ACK │
//!            re-INVITE, UPDATE, INFO, BYE ─▶ Call ◀───── states of the dialog ◀──────────────┘
//!                                             │ orders
//! packets ◀────────────────────────────────▶ Media ◀─ wire ─▶ the call's session
//! ```
//!
//! Messages, transactions and dialogs are the stack's (`rsipstack`), and no type of it leaves this module. Everything
//! about the session is ours: descriptions, keys, timers, and the sound. Nothing that a far end sends can do more than
//! end its own call.

mod announce;
mod auth;
mod call;
mod crypto;
mod incoming;
mod join;
mod line;
mod media;
mod messages;
mod offer;
mod options;
mod outbound;
mod ports;
mod refresh;
mod register;
mod sdp;
mod server;
mod settings;
mod socket;
mod timer;
mod transfer;

pub use crate::wire::{Far, LoopEvidence};
pub use crypto::{Crypto, SrtpKeys, SrtpPolicy, Suite};
pub use offer::{Agreed, NoSession, Ours, answer, offer, take_answer};
pub use options::{Listen, Registrar, SipOptions, SipTransport, TlsFiles, Trunk, User};
pub use outbound::{Dial, DialError};
pub use sdp::{Description, Direction, Media, SdpError};
pub use server::{SipError, SipServer};
pub use settings::{RegistrarSettings, SettingError, SipSettings, TlsSettings, TrunkSettings, UserSettings};
pub use timer::{AskedTimer, Refresher, SessionTimer, TimerTerms};
pub use transfer::Destination;
