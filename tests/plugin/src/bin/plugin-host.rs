//! Loads the plugin, uses it, unloads it, again and again.
//!
//! Usage: `plugin-host PATH before|idle|after|reader`, which says when the
//! threads that used it end. Prints one `SUMMARY` line.

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CStr, CString, c_void};
    use std::sync::Barrier;
    use std::thread;
    use std::time::Duration;

    const THREADS: u32 = 3;
    const TIMES: u32 = 3;
    const READS: u32 = 1000;
    const ROUNDS: u32 = 300;

    fn complain() -> String {
        // SAFETY: dlerror gives a string that lives until the next dl call of
        // this thread, or null.
        unsafe {
            let text = libc::dlerror();
            if text.is_null() {
                return "no reason given".into();
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }

    struct Plugin {
        handle: *mut c_void,
    }

    // SAFETY: a handle may be used from every thread.
    unsafe impl Sync for Plugin {}

    impl Plugin {
        fn open(path: &str) -> Self {
            let path = CString::new(path).expect("a path");
            // SAFETY: the library is ours; its initialisers do nothing unusual.
            let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            assert!(!handle.is_null(), "dlopen: {}", complain());
            Self { handle }
        }

        fn symbol(&self, name: &CStr) -> *mut c_void {
            // SAFETY: the handle is open.
            let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
            assert!(!symbol.is_null(), "dlsym: {}", complain());
            symbol
        }

        fn work(&self, rounds: u32) -> u32 {
            // SAFETY: that function has this type.
            unsafe {
                let work: extern "C" fn(u32) -> u32 =
                    std::mem::transmute(self.symbol(c"plugin_work"));
                work(rounds)
            }
        }

        fn read(&self, rounds: u32) -> u32 {
            // SAFETY: that function has this type.
            unsafe {
                let read: extern "C" fn(u32) -> u32 =
                    std::mem::transmute(self.symbol(c"plugin_read"));
                read(rounds)
            }
        }

        fn leave(&self) -> u64 {
            // SAFETY: that function has this type.
            unsafe {
                let leave: extern "C" fn() -> u64 =
                    std::mem::transmute(self.symbol(c"plugin_leave"));
                leave()
            }
        }

        fn rung(&self) -> u32 {
            // SAFETY: that function has this type.
            unsafe {
                let rung: extern "C" fn() -> u32 = std::mem::transmute(self.symbol(c"plugin_rung"));
                rung()
            }
        }

        fn close(&self) {
            // SAFETY: nobody calls into the library after this; what its
            // thread-locals and threads still do is what is tested.
            assert_eq!(unsafe { libc::dlclose(self.handle) }, 0, "{}", complain());
        }
    }

    fn mapped(path: &str) -> bool {
        let name = path.rsplit('/').next().expect("a name");
        std::fs::read_to_string("/proc/self/maps")
            .expect("maps")
            .contains(name)
    }

    /// When the threads that used the library end.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Order {
        /// Before it is unloaded; the crates' own threads may still be there.
        Before,
        /// As before, and the crates' threads have gone too.
        Idle,
        /// After it was unloaded; they have thread-locals in it.
        After,
        /// As `Idle`, but a thread that only read goes on for some time.
        Reader,
    }

    pub(super) fn main() {
        let mut words = std::env::args().skip(1);
        let path = words.next().expect("a path");
        let order = match words.next().as_deref() {
            Some("before") => Order::Before,
            Some("idle") => Order::Idle,
            Some("after") => Order::After,
            Some("reader") => Order::Reader,
            other => panic!("unknown order {other:?}"),
        };
        // SAFETY: only sets a timer that ends the process if this hangs.
        unsafe { libc::alarm(60) };
        assert!(!mapped(&path));
        let mut last = (0, 0, 0);
        let mut reads = 0;
        for _ in 0..TIMES {
            let plugin = Plugin::open(&path);
            let crew = THREADS as usize + 1 + usize::from(order == Order::Reader);
            let (used, unloaded) = (Barrier::new(crew), Barrier::new(crew));
            let done = Barrier::new(2);
            thread::scope(|scope| {
                let (plugin, used, unloaded, done) = (&plugin, &used, &unloaded, &done);
                let users: Vec<_> = (0..THREADS)
                    .map(|_| {
                        scope.spawn(move || {
                            assert!(plugin.work(ROUNDS) >= ROUNDS);
                            used.wait();
                            if order == Order::After {
                                unloaded.wait();
                            }
                            // Its thread-locals in the library end here.
                        })
                    })
                    .collect();
                let reader = (order == Order::Reader).then(|| {
                    scope.spawn(move || {
                        used.wait();
                        let reads = plugin.read(READS);
                        done.wait();
                        unloaded.wait();
                        // The kernel looks at the finished section of a thread
                        // that it moves aside.
                        for _ in 0..50 {
                            thread::sleep(Duration::from_micros(100));
                        }
                        reads
                    })
                });
                used.wait();
                if order == Order::Reader {
                    done.wait();
                }
                if order != Order::After {
                    for user in users {
                        user.join().expect("a user");
                    }
                }
                last = last_use(plugin);
                if matches!(order, Order::Idle | Order::Reader) {
                    // The workers rest 50 ms before they end.
                    thread::sleep(Duration::from_millis(150));
                }
                plugin.close();
                match order {
                    Order::After => {
                        unloaded.wait();
                    }
                    Order::Reader => {
                        for _ in 0..THREADS {
                            scope.spawn(|| unloaded.wait());
                        }
                        unloaded.wait();
                        reads += reader.expect("a reader").join().expect("reads");
                    }
                    Order::Before | Order::Idle => {}
                }
            });
            // Whatever of it still runs has work here.
            thread::sleep(Duration::from_millis(5));
            for _ in 0..3 {
                forks();
            }
        }
        // The workers' last rest.
        thread::sleep(Duration::from_millis(150));
        let (rung, left, work) = last;
        println!(
            "SUMMARY rung={rung} work={work} reads={reads} left={left} mapped={} result=ok",
            u8::from(mapped(&path))
        );
    }

    /// A fork runs the handlers of whoever registered any.
    fn forks() {
        // SAFETY: the child ends at once.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child, writes `status`.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert_eq!(status, 0, "the child of a fork after the unloading");
    }

    /// By a thread that ends: thread-locals of the main thread would keep the
    /// library loaded.
    fn last_use(plugin: &Plugin) -> (u32, u64, u32) {
        thread::scope(|scope| {
            scope
                .spawn(|| (plugin.rung(), plugin.leave(), plugin.work(0)))
                .join()
                .expect("the last use")
        })
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
}
