//! Programs that must not compile, each with a twin that does.
//!
//! Floor 2 (`hp`), documentation only. A program can fail to compile for a
//! reason that is not the one it was written for; its twin differs in that one
//! thing. (Bug log 74–77.)
//!
//! # Payloads that must stay on their thread
//!
//! A retired value is dropped by whoever reclaims, on any thread.
//!
//! ```compile_fail,E0277
//! let cell = hp::Atomic::<std::rc::Rc<u8>>::new(std::rc::Rc::new(1));
//! ```
//!
//! ```
//! let cell = hp::Atomic::<std::sync::Arc<u8>>::new(std::sync::Arc::new(1));
//! ```
//!
//! The same by the structure level:
//!
//! ```compile_fail,E0277
//! let object = Box::into_raw(Box::new(std::rc::Rc::new(1)));
//! // SAFETY: from a box, linked nowhere.
//! unsafe { hp::Domain::global().retire_box(object) };
//! ```
//!
//! ```
//! let object = Box::into_raw(Box::new(std::sync::Arc::new(1)));
//! // SAFETY: from a box, linked nowhere.
//! unsafe { hp::Domain::global().retire_box(object) };
//! ```
//!
//! A lock's guard belongs to the thread that took it:
//!
//! ```compile_fail,E0277
//! static LOCK: std::sync::Mutex<u8> = std::sync::Mutex::new(1);
//! let cell = hp::Atomic::<std::sync::MutexGuard<'static, u8>>::new(LOCK.lock().unwrap());
//! ```
//!
//! ```
//! static LOCK: std::sync::Mutex<u8> = std::sync::Mutex::new(1);
//! let cell = hp::Atomic::<&'static std::sync::Mutex<u8>>::new(&LOCK);
//! ```
//!
//! # Payloads that must not be shared
//!
//! A cell gives references to many threads.
//!
//! ```compile_fail,E0277
//! static CELL: hp::Atomic<std::cell::Cell<u8>> = hp::Atomic::null();
//! ```
//!
//! ```
//! static CELL: hp::Atomic<std::sync::atomic::AtomicU8> = hp::Atomic::null();
//! ```
//!
//! A guard is a reference:
//!
//! ```compile_fail,E0277
//! let cell = hp::Atomic::<std::cell::Cell<u8>>::new(std::cell::Cell::new(1));
//! let guard = cell.load();
//! std::thread::spawn(move || drop(guard));
//! ```
//!
//! ```
//! let cell = hp::Atomic::<std::cell::Cell<u8>>::new(std::cell::Cell::new(1));
//! let guard = cell.load();
//! std::thread::spawn(|| ()).join().unwrap();
//! drop(guard);
//! ```
//!
//! and so is a borrow of it:
//!
//! ```compile_fail,E0277
//! let cell = hp::Atomic::<std::cell::Cell<u8>>::new(std::cell::Cell::new(1));
//! let guard = cell.load();
//! std::thread::scope(|scope| {
//!     scope.spawn(|| guard.as_ref().map(|one| one.get()));
//! });
//! ```
//!
//! ```
//! let cell = hp::Atomic::<std::sync::atomic::AtomicU8>::new(std::sync::atomic::AtomicU8::new(1));
//! let guard = cell.load();
//! std::thread::scope(|scope| {
//!     scope.spawn(|| guard.as_ref().map(|one| one.load(std::sync::atomic::Ordering::Relaxed)));
//! });
//! ```
//!
//! What was unlinked may still be held by readers elsewhere:
//!
//! ```compile_fail,E0277
//! let cell = hp::Atomic::<std::cell::Cell<u8>>::new(std::cell::Cell::new(1));
//! let unlinked = cell.take();
//! std::thread::spawn(move || drop(unlinked));
//! ```
//!
//! ```
//! let cell = hp::Atomic::<i32>::new(1);
//! let unlinked = cell.take();
//! std::thread::spawn(move || drop(unlinked)).join().unwrap();
//! ```
//!
//! # Payloads that borrow
//!
//! A retired value is dropped at any later time.
//!
//! ```compile_fail,E0597
//! let text = "short".to_string();
//! let cell = hp::Atomic::<&str>::new(text.as_str());
//! ```
//!
//! ```
//! let text: &'static str = "long";
//! let cell = hp::Atomic::<&str>::new(text);
//! ```
//!
//! ```compile_fail,E0597
//! let text = "short".to_string();
//! let object = Box::into_raw(Box::new(text.as_str()));
//! // SAFETY: from a box, linked nowhere.
//! unsafe { hp::Domain::global().retire_box(object) };
//! ```
//!
//! ```
//! let text = "long".to_string();
//! let object = Box::into_raw(Box::new(text));
//! // SAFETY: from a box, linked nowhere.
//! unsafe { hp::Domain::global().retire_box(object) };
//! ```
//!
//! # References that outlive their guard
//!
//! ```compile_fail,E0505
//! let cell = hp::Atomic::<i32>::new(1);
//! let guard = cell.load().unwrap();
//! let inside: &i32 = &guard;
//! drop(guard);
//! assert_eq!(*inside, 1);
//! ```
//!
//! ```
//! let cell = hp::Atomic::<i32>::new(1);
//! let guard = cell.load().unwrap();
//! let inside: &i32 = &guard;
//! assert_eq!(*inside, 1);
//! drop(guard);
//! ```
//!
//! A temporary guard ends with its statement:
//!
//! ```compile_fail,E0716
//! let cell = hp::Atomic::<String>::new("a".to_string());
//! let inside: &str = cell.load().unwrap().as_str();
//! println!("{inside}");
//! ```
//!
//! ```
//! let cell = hp::Atomic::<String>::new("a".to_string());
//! let guard = cell.load().unwrap();
//! let inside: &str = guard.as_str();
//! println!("{inside}");
//! ```
//!
//! Nor can a part be carried out of [`map`](crate::Guard::map):
//!
//! ```compile_fail,E0521
//! let cell = hp::Atomic::<(String, u8)>::new(("a".to_string(), 1));
//! let mut kept: Option<&String> = None;
//! let part = cell.load().unwrap().map(|pair| {
//!     kept = Some(&pair.0);
//!     &pair.1
//! });
//! drop(part);
//! println!("{kept:?}");
//! ```
//!
//! ```
//! let cell = hp::Atomic::<(String, u8)>::new(("a".to_string(), 1));
//! let mut kept: Option<String> = None;
//! let part = cell.load().unwrap().map(|pair| {
//!     kept = Some(pair.0.clone());
//!     &pair.1
//! });
//! drop(part);
//! println!("{kept:?}");
//! ```
//!
//! What an [`Unlinked`](crate::Unlinked) lends ends when it is retired:
//!
//! ```compile_fail,E0505
//! let cell = hp::Atomic::<String>::new("a".to_string());
//! let unlinked = cell.take().unwrap();
//! let inside: &str = unlinked.as_str();
//! drop(unlinked);
//! println!("{inside}");
//! ```
//!
//! ```
//! let cell = hp::Atomic::<String>::new("a".to_string());
//! let unlinked = cell.take().unwrap();
//! let inside: &str = unlinked.as_str();
//! println!("{inside}");
//! drop(unlinked);
//! ```
//!
//! # Variance
//!
//! A cell is written through a shared reference, so it must be invariant: were
//! `Atomic<&'static str>` an `Atomic<&'a str>`, a short-lived string could be
//! stored where a long-lived one is promised (papaya#41).
//!
//! ```compile_fail
//! fn store_short<'a>(cell: &hp::Atomic<&'a str>, text: &'a str) {
//!     cell.store(text);
//! }
//! let cell: hp::Atomic<&'static str> = hp::Atomic::new("long");
//! {
//!     let text = "short".to_string();
//!     store_short(&cell, &text);
//! }
//! println!("{:?}", cell.load());
//! ```
//!
//! ```
//! fn store(cell: &hp::Atomic<&'static str>, text: &'static str) {
//!     cell.store(text);
//! }
//! let cell: hp::Atomic<&'static str> = hp::Atomic::new("long");
//! store(&cell, "as long");
//! println!("{:?}", cell.load());
//! ```
//!
//! The types alone, without the `'static` that a cell asks for anyway: a cell
//! of functions that take any string is not one of functions that take static
//! ones, nor the reverse.
//!
//! ```compile_fail,E0308
//! fn narrow(cell: &hp::Atomic<for<'a> fn(&'a str)>) -> &hp::Atomic<fn(&'static str)> {
//!     cell
//! }
//! ```
//!
//! ```compile_fail,E0308
//! fn widen(cell: &hp::Atomic<fn(&'static str)>) -> &hp::Atomic<for<'a> fn(&'a str)> {
//!     cell
//! }
//! ```
//!
//! ```
//! fn same(cell: &hp::Atomic<for<'a> fn(&'a str)>) -> &hp::Atomic<for<'a> fn(&'a str)> {
//!     cell
//! }
//! // A guard only reads, so it may narrow.
//! fn narrow(guard: hp::Guard<for<'a> fn(&'a str)>) -> hp::Guard<fn(&'static str)> {
//!     guard
//! }
//! ```
//!
//! # A mapped guard points into its object
//!
//! Neither the bound that a closure's result implies nor covariance lets a
//! short borrow escape through [`Guard::map`](crate::Guard::map).
//!
//! ```compile_fail
//! fn through_the_result<'u>(x: &'u String, guard: hp::Guard<()>) -> hp::Guard<String> {
//!     let guard: hp::Guard<Option<&'u String>> = guard.map(|_| &None);
//!     guard.map(move |_| x)
//! }
//! ```
//!
//! ```compile_fail
//! fn through_covariance<'a>(x: &'a String, guard: hp::Guard<&'static u8>) -> hp::Guard<String> {
//!     let guard: hp::Guard<&'a u8> = guard;
//!     guard.map(move |_| x)
//! }
//! ```
//!
//! ```
//! fn part(x: &'static String, guard: hp::Guard<(u8, String)>) -> [hp::Guard<String>; 2] {
//!     [guard.clone().map(|whole| &whole.1), guard.map(move |_| x)]
//! }
//! ```
