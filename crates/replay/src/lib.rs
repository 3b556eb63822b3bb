//! The virtual shell: scenarios, bundles, reports.
//!
//! It drives the same session as the live shell, on a clock that jumps from one event to the next. It may not read a clock,
//! wait for anything or run a task in that loop: a call that is told again must come out as it was, to the microsecond
//! and on every machine. Recorded calls need no line and no model either.

pub mod bundle;
pub mod conform;
pub mod consent;
pub mod engines;
mod mouth;
pub mod report;
pub mod run;
pub mod scenario;
pub mod sweep;
pub mod timing;
