//! loom models of this crate, on its own code.
