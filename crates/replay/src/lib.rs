//! The virtual shell: scenarios, bundles, reports.
