//! The face: public API and the command.
