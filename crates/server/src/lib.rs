//! HTTP API and console.
