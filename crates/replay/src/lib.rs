//! The virtual shell: scenarios, bundles, reports.

pub mod scenario;
pub mod timing;
