//! Floor 3, bench-suite. Owns the tasks of `ctxsw`: threads or processes, their pipes and counters, and their end.
//! May touch `fork`, pipes, shared memory and affinity.

use crate::engine::{interrupt, pin, places};
use crate::trouble::Trouble;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Threads or processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Threads,
    Processes,
}

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Threads => "threads",
            Mode::Processes => "processes",
        }
    }
}

/// Where task i runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// On all CPUs of the i-th core.
    Core,
    /// On the i-th CPU.
    Cpu,
    /// Anywhere.
    None,
}

/// Files of a task: two pipes.
const FILES: usize = 4;

/// Distance of two counters: the original's.
const STRIDE: usize = 256;

/// Stack of a task's thread.
const STACK: usize = 64 * 1024;

/// Raises the limit of open files as far as `tasks` need it.
pub(super) fn allow_files(tasks: usize) -> Result<(), Trouble> {
    let needed = (tasks * FILES + 64) as libc::rlim_t;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls read or write the one struct.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 || limit.rlim_cur >= needed {
            return Ok(());
        }
        let wanted = libc::rlimit {
            rlim_cur: needed.min(limit.rlim_max),
            rlim_max: limit.rlim_max,
        };
        if wanted.rlim_cur < needed || libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) != 0
        {
            return Err(Trouble::Environment(format!(
                "{tasks} tasks need {needed} open files, the limit is {} (ulimit -n)",
                limit.rlim_max
            )));
        }
    }
    Ok(())
}

/// A pipe, closed when dropped.
struct Pipe {
    read: libc::c_int,
    write: libc::c_int,
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: writes two numbers.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Pipe {
            read: ends[0],
            write: ends[1],
        })
    }

    /// Takes one byte. `false` at the end.
    fn take(&self) -> bool {
        let mut byte = 0u8;
        loop {
            // SAFETY: one byte of room.
            match unsafe { libc::read(self.read, (&raw mut byte).cast(), 1) } {
                1 => return true,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
    }

    /// Puts one byte in. `false` if nobody will take it.
    fn put(&self) -> bool {
        let byte = 0u8;
        loop {
            // SAFETY: one byte to read.
            match unsafe { libc::write(self.write, (&raw const byte).cast(), 1) } {
                1 => return true,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // SAFETY: its own ends.
        unsafe {
            libc::close(self.read);
            libc::close(self.write);
        }
    }
}

/// Counters that processes share, each on lines of its own.
struct Counters {
    base: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: shared memory of atomics.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

impl Counters {
    fn new(tasks: usize) -> io::Result<Self> {
        let bytes = tasks * STRIDE;
        // SAFETY: a new mapping concerns no other memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANON,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Counters { base, bytes })
    }

    fn of(&self, task: usize) -> &AtomicU64 {
        assert!((task + 1) * STRIDE <= self.bytes);
        // SAFETY: inside the mapping, which is aligned and zero at first.
        unsafe {
            &*self
                .base
                .cast::<u8>()
                .add(task * STRIDE)
                .cast::<AtomicU64>()
        }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: its own mapping, which nobody borrows any more.
        unsafe {
            libc::munmap(self.base, self.bytes);
        }
    }
}

/// Counts without an atomic addition, as the original: only the owner writes.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 2, Ordering::Relaxed);
}

/// The tasks of one run, at work until dropped.
pub(super) struct Pairs {
    tasks: usize,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    processes: Vec<libc::pid_t>,
}

impl Pairs {
    /// Starts `tasks` pairs: all wait at a gate, which opens when the last is there.
    pub(super) fn start(mode: Mode, binding: Binding, tasks: usize) -> Result<Self, Trouble> {
        let trouble = |what: &str, error: io::Error| {
            Trouble::Environment(format!("{what} for {tasks} tasks: {error}"))
        };
        let here = places::here();
        let order = match binding {
            Binding::Core => places::cores(&here),
            Binding::Cpu => here.iter().map(|cpu| vec![cpu.cpu]).collect(),
            Binding::None => Vec::new(),
        };
        let place = |task: usize| (!order.is_empty()).then(|| order[task % order.len()].clone());
        let counters = Counters::new(tasks).map_err(|error| trouble("no shared memory", error))?;
        let mut pairs = Pairs {
            tasks,
            counters: Arc::new(counters),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
            processes: Vec::new(),
        };
        match mode {
            Mode::Threads => pairs
                .threads(place)
                .map_err(|error| trouble("no threads", error))?,
            Mode::Processes => pairs
                .processes(place)
                .map_err(|error| trouble("no processes", error))?,
        }
        Ok(pairs)
    }

    /// Messages so far, task by task.
    pub(super) fn counts(&self) -> Vec<u64> {
        (0..self.tasks)
            .map(|task| self.counters.of(task).load(Ordering::Relaxed))
            .collect()
    }

    fn threads(&mut self, place: impl Fn(usize) -> Option<Vec<usize>>) -> io::Result<()> {
        let gate = Arc::new(std::sync::Barrier::new(self.tasks + 1));
        let mut made = Vec::with_capacity(self.tasks);
        for task in 0..self.tasks {
            made.push((task, Pipe::new()?, Pipe::new()?, place(task)));
        }
        let (tell, told) = std::sync::mpsc::channel();
        for (task, there, back, cpus) in made {
            let (counters, stop) = (Arc::clone(&self.counters), Arc::clone(&self.stop));
            let (gate, tell) = (Arc::clone(&gate), tell.clone());
            let owner = move || {
                // Only this task's partner is made by it, so that the partner has its CPUs.
                let ready = cpus
                    .as_deref()
                    .map_or(Ok(()), pin::bind_all)
                    .map_err(io::Error::other);
                let pipes = Arc::new((there, back));
                let theirs = Arc::clone(&pipes);
                let partner = ready.and_then(|()| {
                    std::thread::Builder::new()
                        .stack_size(STACK)
                        .spawn(move || {
                            let (there, back) = &*theirs;
                            while there.take() && back.put() {}
                        })
                });
                let partner = match partner {
                    Ok(partner) => {
                        let _ = tell.send(Ok(()));
                        partner
                    }
                    Err(error) => {
                        let _ = tell.send(Err(error));
                        return;
                    }
                };
                gate.wait();
                let (there, back) = &*pipes;
                while !stop.load(Ordering::Relaxed) && there.put() && back.take() {
                    count(counters.of(task));
                }
                // Ends the partner's next read.
                // SAFETY: an end of this pair's pipe; `Pipe` closes the number of a file that is one again.
                unsafe {
                    libc::dup2(back.read, there.write);
                }
                let _ = partner.join();
            };
            self.threads
                .push(std::thread::Builder::new().stack_size(STACK).spawn(owner)?);
        }
        drop(tell);
        for _ in 0..self.tasks {
            match told.recv() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    // Those that wait at the gate stay there: the program ends.
                    self.threads.clear();
                    return Err(error);
                }
                Err(_) => {
                    self.threads.clear();
                    return Err(io::Error::other("a task ended before it began"));
                }
            }
        }
        gate.wait();
        Ok(())
    }

    /// This process has one thread, so what is forked may do what it likes.
    fn processes(&mut self, place: impl Fn(usize) -> Option<Vec<usize>>) -> io::Result<()> {
        let gate = Pipe::new()?;
        let before = pin::allowed();
        for task in 0..self.tasks {
            let (there, back) = (Pipe::new()?, Pipe::new()?);
            // The parent binds itself, forks, and goes back.
            if let Some(cpus) = place(task) {
                pin::bind_all(&cpus).map_err(io::Error::other)?;
            }
            // SAFETY: see above; the child never returns.
            match unsafe { libc::fork() } {
                -1 => {
                    let error = io::Error::last_os_error();
                    let _ = pin::bind_all(&before);
                    return Err(error);
                }
                0 => self.owner(task, &gate, &there, &back),
                pid => self.processes.push(pid),
            }
        }
        let _ = pin::bind_all(&before);
        if gate.put() {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// A forked task.
    fn owner(&self, task: usize, gate: &Pipe, there: &Pipe, back: &Pipe) -> ! {
        let leave = |code| -> ! {
            // SAFETY: ends this process without running what belongs to its parent.
            unsafe { libc::_exit(code) }
        };
        // SAFETY: the default action of both ends this process.
        unsafe {
            libc::signal(libc::SIGTERM, libc::SIG_DFL);
            libc::signal(libc::SIGINT, libc::SIG_IGN);
        }
        interrupt::die_with_parent();
        // SAFETY: as for the first one.
        match unsafe { libc::fork() } {
            -1 => leave(1),
            0 => {
                interrupt::die_with_parent();
                while there.take() && back.put() {}
                leave(0)
            }
            _ => {}
        }
        let mut ready = libc::pollfd {
            fd: gate.read,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor. Nobody takes the byte, so it opens the gate for all.
        while unsafe { libc::poll(&raw mut ready, 1, -1) } < 1 {}
        let counter = self.counters.of(task);
        while there.put() && back.take() {
            count(counter);
        }
        leave(1)
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for &pid in &self.processes {
            // SAFETY: a child that has not been waited for; its partner dies with it.
            unsafe {
                libc::kill(pid, libc::SIGTERM);
            }
        }
        for &pid in &self.processes {
            let mut status = 0;
            // SAFETY: as above.
            unsafe {
                libc::waitpid(pid, &raw mut status, 0);
            }
        }
    }
}
