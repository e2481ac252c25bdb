//! Programs over the structures that must not compile, each with a twin that
//! does.
//!
//! Floor 2 (`hp`), documentation only; see `hp/src/compile_fail.rs`.
//! (Bug log 74–77.)
//!
//! # Payloads that must stay on their thread
//!
//! Entries of a map are dropped by whoever reclaims, on any thread:
//!
//! ```compile_fail,E0277
//! let map = hp::structures::Map::<u8, std::rc::Rc<u8>>::new();
//! ```
//!
//! ```
//! let map = hp::structures::Map::<u8, std::sync::Arc<u8>>::new();
//! ```
//!
//! and so are their keys:
//!
//! ```compile_fail,E0277
//! let map = hp::structures::Map::<std::rc::Rc<u8>, u8>::new();
//! ```
//!
//! ```
//! let map = hp::structures::Map::<std::sync::Arc<u8>, u8>::new();
//! ```
//!
//! A stack gives a value back to one thread. It may hold what is not `Send`,
//! and stays on its thread then:
//!
//! ```compile_fail,E0277
//! let stack = hp::structures::Stack::new();
//! stack.push(std::rc::Rc::new(1));
//! std::thread::spawn(move || drop(stack.pop()));
//! ```
//!
//! ```
//! let stack = hp::structures::Stack::new();
//! stack.push(std::sync::Arc::new(1));
//! std::thread::spawn(move || drop(stack.pop()));
//! ```
//!
//! # Payloads that must not be shared
//!
//! A map gives references to many threads, to its keys as well:
//!
//! ```compile_fail,E0277
//! let map = hp::structures::Map::new();
//! map.insert(1, std::cell::Cell::new(1));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| map.get(&1).map(|cell| cell.set(2)));
//! });
//! ```
//!
//! ```
//! let map = hp::structures::Map::new();
//! map.insert(1, std::sync::atomic::AtomicU8::new(1));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| map.get(&1).map(|cell| cell.load(std::sync::atomic::Ordering::Relaxed)));
//! });
//! ```
//!
//! Its iterator is one of these references, and holds another:
//!
//! ```compile_fail,E0277
//! let map = hp::structures::Map::<u8, std::cell::Cell<u8>>::new();
//! let mut iter = map.iter();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || drop(iter.next()));
//! });
//! ```
//!
//! ```
//! let map = hp::structures::Map::<u8, std::sync::atomic::AtomicU8>::new();
//! let mut iter = map.iter();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || drop(iter.next()));
//! });
//! ```
//!
//! # Payloads that borrow
//!
//! A map's entries may outlive it:
//!
//! ```compile_fail,E0597
//! let map = hp::structures::Map::new();
//! let text = "text".to_string();
//! map.insert(1, text.as_str());
//! ```
//!
//! ```
//! let map = hp::structures::Map::new();
//! let text = "text";
//! map.insert(1, text);
//! ```
//!
//! A stack's do not, but must outlive it:
//!
//! ```compile_fail,E0597
//! let stack = hp::structures::Stack::new();
//! {
//!     let text = "text".to_string();
//!     stack.push(text.as_str());
//! }
//! ```
//!
//! ```
//! let text = "text".to_string();
//! let stack = hp::structures::Stack::new();
//! {
//!     stack.push(text.as_str());
//! }
//! ```
//!
//! A shared stack of long borrows is not one of short borrows: something short
//! could be pushed. (Bug log 76.)
//!
//! ```compile_fail
//! use hp::structures::Stack;
//! fn shorten<'a>(stack: &'a Stack<&'static str>, text: &'a str) {
//!     let short: &Stack<&'a str> = stack;
//!     short.push(text);
//! }
//! ```
//!
//! ```
//! use hp::structures::Stack;
//! fn shorten<'a>(stack: &'a Stack<&'static str>, text: &'static str) {
//!     let short: &Stack<&'static str> = stack;
//!     short.push(text);
//! }
//! ```
//!
//! # What would look at a value that another thread may take
//!
//! ```compile_fail
//! let stack = hp::structures::Stack::from_iter(["text".to_string()]);
//! stack.peek();
//! ```
//!
//! ```
//! let stack = hp::structures::Stack::from_iter(["text"]);
//! stack.peek();
//! ```
//!
//! ```compile_fail,E0596
//! let stack = hp::structures::Stack::from_iter([1]);
//! stack.iter_mut();
//! ```
//!
//! ```
//! let mut stack = hp::structures::Stack::from_iter([1]);
//! stack.iter_mut();
//! ```
