//! The virtual shell: scenarios, bundles, reports.

pub mod conform;
pub mod report;
pub mod scenario;
pub mod timing;
