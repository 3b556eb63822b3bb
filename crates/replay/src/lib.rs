//! The virtual shell: scenarios, bundles, reports.

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
