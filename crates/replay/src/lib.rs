//! The virtual shell: scenarios, bundles, reports.

pub mod report;
pub mod scenario;
pub mod timing;
