//! Floor 3, bench-suite. Owns the interrupts of simulated CPUs: who sends, who answers, when a CPU listens.
//! May touch signals, and one word of a thread for the handler.
//!
//! A request is a node on the stack of who sends it, put into the inbox of its target; the sender waits until the
//! target has answered. Two flavours, which differ in how the target learns of it:
//!
//! | | the target looks into its inbox |
//! |---|---|
//! | mailbox | when it polls: at each switch, in the work of kernel threads, and while it waits for others |
//! | signal | when a real signal interrupts it, wherever it is |
//!
//! A CPU that waits for an answer goes on answering, so two that interrupt each other both go on. What an interrupt
//! changes is touched with *interrupts off* only: a flag of the CPU's own that makes the handler leave the work for the
//! end of the region, as `local_irq_disable` does.
//!
//! **Orderings.** *Post* (Release, into the inbox) pairs with *Take* (Acquire); *Answer* (Release, the request's flag)
//! with the sender's *Wait* (Acquire): what the target did about it happens before what the sender does next. A request
//! is not touched after its answer. The flags `off` and `late` are the thread's own, handler and all: Relaxed between
//! compiler fences.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, compiler_fence};

/// How a target learns of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ipi {
    /// It polls
    Mailbox,
    /// A real signal interrupts it
    Signal,
}

impl Ipi {
    /// The word of the option.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Ipi::Mailbox => "mailbox",
            Ipi::Signal => "signal",
        }
    }
}

/// What a target is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Let go of the mm (`do_shoot_lazy_tlb`).
    Shoot,
    /// Say if it is still there (`do_check_lazy_tlb`).
    Check,
}

/// One interrupt.
#[derive(Debug)]
pub(super) struct Request {
    what: What,
    address: NonNull<()>,
    next: Cell<*mut Request>,
    done: AtomicBool,
}

impl Request {
    /// For the mm at `address`.
    pub(super) fn new(what: What, address: NonNull<()>) -> Self {
        Request {
            what,
            address,
            next: Cell::new(ptr::null_mut()),
            done: AtomicBool::new(false),
        }
    }

    /// Whether it was answered.
    pub(super) fn is_done(&self) -> bool {
        // Acquire: "Wait", pairs with "Answer".
        self.done.load(Acquire)
    }
}

/// What others write to.
#[derive(Debug)]
#[repr(align(128))]
struct Inbox {
    first: AtomicPtr<Request>,
    /// The thread that plays the CPU, for signals.
    thread: AtomicI32,
}

/// What the CPU alone writes.
#[derive(Debug)]
#[repr(align(128))]
struct Own {
    off: AtomicBool,
    late: AtomicBool,
}

/// One CPU's interrupts.
#[derive(Debug)]
pub(super) struct Line {
    inbox: Inbox,
    own: Own,
    ipi: Ipi,
}

impl Line {
    /// A CPU that nobody plays yet.
    pub(super) fn new(ipi: Ipi) -> Self {
        Line {
            inbox: Inbox {
                first: AtomicPtr::new(ptr::null_mut()),
                thread: AtomicI32::new(0),
            },
            own: Own {
                off: AtomicBool::new(false),
                late: AtomicBool::new(false),
            },
            ipi,
        }
    }

    /// Interrupts off: no handler works until [`on`](Self::on). Not nested.
    #[inline(always)]
    pub(super) fn off(&self) {
        self.own.off.store(true, Relaxed);
        // What follows stays behind the flag, as the handler sees it.
        compiler_fence(SeqCst);
    }

    /// Interrupts on; `answer` does what came meanwhile.
    #[inline(always)]
    pub(super) fn on(&self, answer: impl Fn(What, NonNull<()>)) {
        compiler_fence(SeqCst);
        self.own.off.store(false, Relaxed);
        compiler_fence(SeqCst);
        if self.own.late.load(Relaxed) {
            self.catch_up(answer);
        }
    }

    #[cold]
    fn catch_up(&self, answer: impl Fn(What, NonNull<()>)) {
        while self.own.late.load(Relaxed) {
            self.off();
            self.own.late.store(false, Relaxed);
            // Cleared before the look: a ring that comes in between sets it again. (An Acquire swap keeps no store that
            // stands before it in its place.)
            compiler_fence(SeqCst);
            self.take(&answer);
            compiler_fence(SeqCst);
            self.own.off.store(false, Relaxed);
            compiler_fence(SeqCst);
        }
    }

    /// Whether the inbox has something for a CPU that polls.
    #[inline(always)]
    pub(super) fn polled(&self) -> bool {
        // Relaxed: taking it is what acquires.
        self.ipi == Ipi::Mailbox && !self.inbox.first.load(Relaxed).is_null()
    }

    /// Answers what is in the inbox; with interrupts off.
    pub(super) fn take(&self, answer: &impl Fn(What, NonNull<()>)) {
        // Acquire: "Take", pairs with "Post".
        let mut at = self.inbox.first.swap(ptr::null_mut(), Acquire);
        // SAFETY: its sender waits for the answer.
        while let Some(request) = unsafe { at.as_ref() } {
            at = request.next.get();
            answer(request.what, request.address);
            // Release: "Answer". The request may be gone afterwards.
            request.done.store(true, Release);
        }
    }

    /// Interrupts this CPU.
    ///
    /// # Safety
    /// `request` stays where it is, untouched, until [`is_done`](Request::is_done).
    pub(super) unsafe fn send(&self, request: &Request) {
        let new = ptr::from_ref(request).cast_mut();
        // Relaxed: only compared.
        let mut first = self.inbox.first.load(Relaxed);
        loop {
            request.next.set(first);
            // Release: "Post". Relaxed: only compared.
            match self
                .inbox
                .first
                .compare_exchange_weak(first, new, Release, Relaxed)
            {
                Ok(_) => break,
                Err(seen) => first = seen,
            }
        }
        // Who found it empty rings; the others' requests are taken with the first.
        if self.ipi == Ipi::Signal && first.is_null() {
            // Relaxed: stored before the start gate.
            signal::ring(self.inbox.thread.load(Relaxed));
        }
    }

    /// The calling thread plays this CPU from now on; what it answers with is `call(data)`.
    pub(super) fn attend<'a>(&'a self, here: &'a Here) -> Attending<'a> {
        self.inbox.thread.store(signal::thread(), Relaxed);
        HERE.with(|word| word.store(ptr::from_ref(here).cast_mut(), Relaxed));
        Attending { _here: here }
    }

    /// In the handler: work that waits until interrupts are on again.
    fn too_late(&self) -> bool {
        let off = self.own.off.load(Relaxed);
        if off {
            self.own.late.store(true, Relaxed);
        }
        off
    }
}

/// What the handler of a thread calls.
#[derive(Debug)]
pub(super) struct Here {
    pub(super) line: *const Line,
    pub(super) call: unsafe fn(*const ()),
    pub(super) data: *const (),
}

thread_local! {
    /// One word without a destructor, so that a handler may look at any time.
    static HERE: AtomicPtr<Here> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// As long as this lives the thread answers.
pub(super) struct Attending<'a> {
    _here: &'a Here,
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        HERE.with(|word| word.store(ptr::null_mut(), Relaxed));
        compiler_fence(SeqCst);
    }
}

/// The handler's work.
fn interrupted() {
    // SAFETY: set and cleared by this thread, around the life of what it points to.
    let Some(here) = (unsafe { HERE.with(|word| word.load(Relaxed)).as_ref() }) else {
        return;
    };
    compiler_fence(SeqCst);
    // SAFETY: as above.
    if !unsafe { &*here.line }.too_late() {
        // SAFETY: `data` is what `call` takes, and interrupts are on.
        unsafe { (here.call)(here.data) };
    }
    compiler_fence(SeqCst);
}

#[cfg(target_os = "linux")]
mod signal {
    //! The signal: SIGUSR1, which nothing else here uses.

    use crate::engine::crew::Refusal;

    /// The number of the calling thread.
    pub(super) fn thread() -> i32 {
        // SAFETY: takes nothing.
        unsafe { libc::gettid() }
    }

    /// Sends it.
    pub(super) fn ring(thread: i32) {
        // SAFETY: takes numbers. The thread is alive: it leaves only after everybody has stopped sending.
        let rc = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
        if rc != 0 {
            // No unwinding: the request is on this stack.
            eprintln!(
                "--ipi signal: no signal can be sent: {}",
                std::io::Error::last_os_error()
            );
            std::process::abort();
        }
    }

    extern "C" fn handler(_: libc::c_int) {
        super::interrupted();
    }

    /// Installs the handler.
    pub(in super::super) fn install() -> Result<(), Refusal> {
        // SAFETY: zeroed is a valid `sigaction` with an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
        // System calls of the interrupted code go on.
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler touches atomics, and what the CPU's thread leaves alone while interrupts are on.
        match unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(Refusal::Environment(format!(
                "--ipi signal: no handler: {}",
                std::io::Error::last_os_error()
            ))),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod signal {
    //! Signals to threads are Linux here.

    use crate::engine::crew::Refusal;

    pub(super) fn thread() -> i32 {
        0
    }

    pub(super) fn ring(_: i32) {}

    pub(in super::super) fn install() -> Result<(), Refusal> {
        Err(Refusal::Skipped(
            "--ipi signal needs Linux".to_owned(),
            None,
        ))
    }
}

pub(super) use signal::install;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    struct Station {
        line: Line,
        shot: AtomicU64,
        checked: AtomicU64,
    }

    impl Station {
        fn new(ipi: Ipi) -> Self {
            Station {
                line: Line::new(ipi),
                shot: AtomicU64::new(0),
                checked: AtomicU64::new(0),
            }
        }

        fn answer(&self, what: What, _: NonNull<()>) {
            let count = match what {
                What::Shoot => &self.shot,
                What::Check => &self.checked,
            };
            count.fetch_add(1, Relaxed);
        }

        fn here(&self) -> Here {
            unsafe fn call(data: *const ()) {
                // SAFETY: as `here` says.
                let station = unsafe { &*data.cast::<Station>() };
                station.line.off();
                station
                    .line
                    .take(&|what, address| station.answer(what, address));
                station
                    .line
                    .on(|what, address| station.answer(what, address));
            }
            Here {
                line: &raw const self.line,
                call,
                data: ptr::from_ref(self).cast(),
            }
        }

        fn poll(&self) {
            if self.line.polled() {
                self.line.off();
                self.line.take(&|what, address| self.answer(what, address));
                self.line.on(|what, address| self.answer(what, address));
            }
        }
    }

    /// Two CPUs that interrupt each other all the time: each request is answered once, nobody waits for ever.
    fn each_other(ipi: Ipi) {
        const TIMES: u64 = 2000;
        if ipi == Ipi::Signal {
            install().expect("a handler");
        }
        let stations = [Station::new(ipi), Station::new(ipi)];
        let ready = AtomicU64::new(0);
        let ended = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for me in 0..2 {
                let (stations, ready, ended) = (&stations, &ready, &ended);
                scope.spawn(move || {
                    let here = stations[me].here();
                    let attending = stations[me].line.attend(&here);
                    ready.fetch_add(1, SeqCst);
                    while ready.load(SeqCst) < 2 {
                        std::thread::yield_now();
                    }
                    for i in 0..TIMES {
                        let what = if i % 2 == 0 { What::Shoot } else { What::Check };
                        let request = Request::new(what, NonNull::dangling());
                        // Regions in which the other one's interrupts must wait.
                        stations[me].line.off();
                        let before = stations[me].shot.load(Relaxed);
                        (0..50).for_each(|_| std::hint::spin_loop());
                        assert_eq!(
                            before,
                            stations[me].shot.load(Relaxed),
                            "interrupts are off"
                        );
                        stations[me]
                            .line
                            .on(|what, address| stations[me].answer(what, address));
                        // SAFETY: waited for here.
                        unsafe { stations[1 - me].line.send(&request) };
                        while !request.is_done() {
                            stations[me].poll();
                            std::thread::yield_now();
                        }
                    }
                    ended.fetch_add(1, SeqCst);
                    while ended.load(SeqCst) < 2 {
                        stations[me].poll();
                        std::thread::yield_now();
                    }
                    drop(attending);
                });
            }
        });
        for station in &stations {
            assert_eq!(station.shot.load(Relaxed), TIMES / 2);
            assert_eq!(station.checked.load(Relaxed), TIMES / 2);
        }
    }

    #[test]
    fn two_that_poll_answer_each_other() {
        each_other(Ipi::Mailbox);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn two_that_are_signalled_answer_each_other() {
        each_other(Ipi::Signal);
    }
}
