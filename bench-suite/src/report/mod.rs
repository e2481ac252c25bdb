//! Floor 3, bench-suite. Owns everything that leaves the program: records, tables, files, plots.
//! May touch files and terminals; knows nothing of how a run is made.

pub(crate) mod bootstrap;
pub(crate) mod cdf;
pub(crate) mod compare;
pub(crate) mod disturbed;
pub(crate) mod facts;
pub(crate) mod html;
pub(crate) mod human;
pub(crate) mod judge;
pub(crate) mod markdown;
pub(crate) mod offline;
pub(crate) mod output;
pub(crate) mod record;
pub(crate) mod resume;
pub(crate) mod sink;
pub(crate) mod stats;
pub(crate) mod summary;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod theirs;
pub(crate) mod view;
