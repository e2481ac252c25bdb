//! loom models of this crate, on its own code.
//!
//! Floor 1 (`percpu`), compiled for tests under `--cfg loom` only.
//!
//! | module | what |
//! |---|---|
//! | `l0` | what loom itself can and cannot see; no code of ours |
//! | `l3` | a line's first use against a scan |
//! | `l9` | the choice of the rung against its first use |
//! | `machine` | what the simulated barriers and sections order, and what not |
//! | `sections` | the orderings that every section promises |
//!
//! A green model is no proof; `l0` says why. `ci/mutants.py` weakens the code
//! line by line and expects these models to fail.

mod l0;
mod l3;
mod l9;
mod machine;
mod sections;
