//! Floor 3, bench-suite. Owns the tasks of `ctxsw`: threads or processes, their counters, and their end.
//! May touch `fork`, pipes, shared memory and affinity.

use super::pipes::{Pipe, Pipes, STACK};
use crate::engine::job::Pin;
use crate::engine::{interrupt, pin, places};
use crate::report::human;
use crate::trouble::Trouble;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Threads or processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Threads,
    Processes,
}

/// Distance of two counters: the original's.
const STRIDE: usize = 256;

/// How the process of a task ends that could not make its partner.
const NO_PARTNER: libc::c_int = 3;

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
    pub(super) fn start(mode: Mode, pin: Pin, tasks: usize) -> Result<Self, Trouble> {
        let trouble = |what: &str, error: io::Error| {
            Trouble::Environment(format!("{what} for {tasks} tasks: {error}"))
        };
        let order = pin::order(pin, &places::here());
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

    /// Looks whether all tasks are still at work: what a dead one left undone must not pass for a rate.
    pub(super) fn alive(&mut self) -> Result<(), Trouble> {
        let died = |how: &str| {
            let tasks = human::plural(self.tasks, "task");
            Trouble::Correctness(format!("one of {tasks} ended during the run: {how}"))
        };
        if self.threads.iter().any(JoinHandle::is_finished) {
            return Err(died("its pipes broke"));
        }
        if self.processes.is_empty() {
            return Ok(());
        }
        let mut status = 0;
        // SAFETY: writes one number. This process has no children but the tasks.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if pid <= 0 {
            return Ok(());
        }
        let status = ExitStatus::from_raw(status);
        let trouble = match status.code() {
            Some(NO_PARTNER) => Trouble::Environment(format!(
                "a task of {} cannot start its partner's process",
                self.tasks
            )),
            Some(_) => died("its partner has gone"),
            None => died(&status.to_string()),
        };
        self.processes.retain(|&task| task != pid);
        Err(trouble)
    }

    fn threads(&mut self, place: impl Fn(usize) -> Option<Vec<usize>>) -> io::Result<()> {
        let gate = Arc::new(std::sync::Barrier::new(self.tasks + 1));
        let mut made = Vec::with_capacity(self.tasks);
        for task in 0..self.tasks {
            made.push((task, Pipes::new()?, place(task)));
        }
        let (tell, told) = std::sync::mpsc::channel();
        for (task, pipes, cpus) in made {
            let (counters, stop) = (Arc::clone(&self.counters), Arc::clone(&self.stop));
            let (gate, tell) = (Arc::clone(&gate), tell.clone());
            let owner = move || {
                // Only this task's partner is made by it, so that the partner has its CPUs.
                let ready = cpus
                    .as_deref()
                    .map_or(Ok(()), pin::bind_all)
                    .map_err(io::Error::other);
                let pipes = Arc::new(pipes);
                let theirs = Arc::clone(&pipes);
                let partner = ready.and_then(|()| {
                    std::thread::Builder::new()
                        .stack_size(STACK)
                        .spawn(move || theirs.answer(&mut ()))
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
                while !stop.load(Ordering::Relaxed) && pipes.hand_over(&mut ()) {
                    count(counters.of(task));
                }
                pipes.hang_up();
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
            let pipes = Pipes::new()?;
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
                0 => self.owner(task, &gate, &pipes),
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
    fn owner(&self, task: usize, gate: &Pipe, pipes: &Pipes) -> ! {
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
            -1 => leave(NO_PARTNER),
            0 => {
                interrupt::die_with_parent();
                pipes.keep_partners();
                pipes.answer(&mut ());
                leave(0)
            }
            _ => pipes.keep_owners(),
        }
        let mut ready = libc::pollfd {
            fd: gate.read_end(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor. Nobody takes the byte, so it opens the gate for all.
        while unsafe { libc::poll(&raw mut ready, 1, -1) } < 1 {}
        let counter = self.counters.of(task);
        while pipes.hand_over(&mut ()) {
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
