//! stub
pub struct Rcu;
