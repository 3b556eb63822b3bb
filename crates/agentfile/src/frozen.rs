//! Frozen inputs, as the runtime makes them: strict JSON in, canonical JSON and its hash out.

pub use sayback_runtime::frozen::{
    FreezeError, MAX_BYTES, MAX_DEPTH, MAX_INTEGER, canonical, parse_strict, sha256,
};
