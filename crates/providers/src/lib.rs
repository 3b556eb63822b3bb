//! One file and one feature per speech or language engine.
