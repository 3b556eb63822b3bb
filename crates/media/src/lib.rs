//! Sound: pure computation on samples; never waits, never reads a clock.
