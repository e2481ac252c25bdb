//! Floor 3, bench-suite. Owns the threads of `schbench`: message threads, workers, and how they hand on to each other.
//! May touch threads, affinity and the futex that it is given.
//!
//! The loops are the original's. A worker marks its word BLOCKED, notes the time, joins its message thread's list, posts
//! that thread and waits; once woken it takes the time from the *waker's* clock reading to now as wakeup latency, sleeps and
//! works, and counts one. A message thread marks its own word BLOCKED, takes the list, reads the clock once, hands that
//! time to each on the list and posts it, and waits. With a pace (`-R`, `-A`) there is no list: the message thread pushes
//! requests to its workers in turn, and a worker answers all that it finds before it waits again.
//!
//! Each message thread takes the CPUs of the workers, starts its workers, which inherit them, and then goes to its own.
//!
//! **Orderings.** The words and `stopping` are SeqCst (see `futex`). What a worker tells of itself (`loops`, `busy_us`) is
//! Relaxed: main reads it for reports, and exactly after `join`. `wake_us` is Relaxed: the post behind it releases it.

use super::clock;
use super::futex::{self, BLOCKED, Futex, RUNNING};
use super::histogram::Histogram;
use super::plan::{Pacing, Plan};
use super::queue::{Chain, Queue};
use super::work::{Desk, Factors, Locks};
use crate::engine::pin;
use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Stack of a thread: thousands may be alive.
pub(super) const STACK: usize = 128 << 10;

/// Requests that wait for one worker at most, in the original's pace.
const PENDING: u64 = 128;

/// How long a message thread sleeps at most before it looks whether the run is over.
const NAP_NS: u64 = 50_000_000;

/// What pipe mode hands over.
#[derive(Debug)]
struct Page(UnsafeCell<Box<[u8]>>);

// SAFETY: the page is written by its worker until that joins the list, and by the message thread from when it took the
// list until it posts the worker; list and post order the two.
unsafe impl Sync for Page {}

impl Page {
    fn fill(&self, byte: u8) {
        // SAFETY: this thread has the page, see above.
        unsafe { (*self.0.get()).fill(byte) };
    }
}

/// A thread that waits for others. Word, time and links share a line, as in the original.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Seat {
    word: AtomicU32,
    /// The worker behind this one on the list, from 1 on; 0 ends it. Of a message thread: the first.
    next: AtomicUsize,
    queue: Queue,
    wake_us: AtomicU64,
    pending: AtomicU64,
    tid: AtomicI32,
    /// Mean scheduling delay in nanoseconds, once the thread has ended.
    pub(super) delay_ns: AtomicU64,
}

impl Seat {
    fn new() -> Self {
        Seat {
            word: AtomicU32::new(BLOCKED),
            next: AtomicUsize::new(0),
            queue: Queue::default(),
            wake_us: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            tid: AtomicI32::new(0),
            delay_ns: AtomicU64::new(0),
        }
    }

    /// What `/proc` says of the thread now, while it lives.
    pub(super) fn delay_now(&self) -> Option<u64> {
        super::delay::of(self.tid.load(Relaxed))
    }
}

/// A worker's seat and what it counts.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) seat: Seat,
    pub(super) wakeup: Histogram,
    pub(super) request: Histogram,
    pub(super) loops: AtomicU64,
    /// From the worker's start to its last request.
    pub(super) busy_us: AtomicU64,
    page: Page,
}

/// What all threads of a run share.
#[derive(Debug)]
pub(super) struct Crew<F> {
    pub(super) plan: Plan,
    futex: F,
    stopping: AtomicBool,
    /// Requests per second of each message thread now.
    pub(super) goal: AtomicU32,
    /// Requests pushed to workers.
    pub(super) sent: AtomicU64,
    /// Requests that were left out because a worker had too many.
    pub(super) left_out: AtomicU64,
    locks: Locks,
    common: Option<Arc<Factors>>,
    pub(super) messengers: Vec<Seat>,
    pub(super) workers: Vec<Worker>,
}

/// A message thread that runs.
type Thread = JoinHandle<()>;

/// What a message thread says when its workers are there.
type Ready = Result<(), (usize, io::Error)>;

impl<F: Futex> Crew<F> {
    pub(super) fn new(plan: Plan, futex: F) -> Self {
        let worker = |_| Worker {
            seat: Seat::new(),
            wakeup: Histogram::new(),
            request: Histogram::new(),
            loops: AtomicU64::new(0),
            busy_us: AtomicU64::new(0),
            page: Page(UnsafeCell::new(
                vec![0; plan.pipe.unwrap_or(0)].into_boxed_slice(),
            )),
        };
        Crew {
            stopping: AtomicBool::new(false),
            goal: AtomicU32::new(plan.paced.map_or(0, |paced| paced.goal)),
            sent: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            locks: Locks::new(),
            common: (plan.split < 100 && plan.operations > 0)
                .then(|| Arc::new(Factors::new(plan.edge))),
            messengers: (0..plan.messengers).map(|_| Seat::new()).collect(),
            workers: (0..plan.messengers * plan.workers).map(worker).collect(),
            plan,
            futex,
        }
    }

    /// Requests answered.
    pub(super) fn loops(&self) -> u64 {
        self.workers
            .iter()
            .map(|worker| worker.loops.load(Relaxed))
            .sum()
    }

    fn over(&self) -> bool {
        self.stopping.load(SeqCst)
    }

    /// The workers of message thread `index`, by number.
    fn of(&self, index: usize) -> std::ops::Range<usize> {
        let each = self.plan.workers;
        index * each..(index + 1) * each
    }

    fn post(&self, seat: &Seat) {
        futex::post(&self.futex, &seat.word);
    }

    /// Puts worker `me` at the head of `list`.
    fn join_list(&self, list: &Seat, me: usize) {
        let mut first = list.next.load(Relaxed);
        loop {
            self.workers[me].seat.next.store(first, Relaxed);
            // SeqCst: releases the worker's time and page to `wake_all`, and stands before the post that follows.
            match list
                .next
                .compare_exchange_weak(first, me + 1, SeqCst, Relaxed)
            {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Wakes all that are on the list, with one clock reading for all (in pipe mode one each).
    fn wake_all(&self, list: &Seat) {
        let mut first = list.next.load(Relaxed);
        // SeqCst: acquires what `join_list` released, and stands behind the store of the word.
        while let Err(now) = list.next.compare_exchange(first, 0, SeqCst, SeqCst) {
            first = now;
        }
        let now = clock::us();
        while first != 0 {
            let worker = &self.workers[first - 1];
            // Before the post: then it may be on the list again.
            first = worker.seat.next.load(Relaxed);
            let time = if self.plan.pipe.is_some() {
                worker.page.fill(1);
                clock::us()
            } else {
                now
            };
            worker.seat.wake_us.store(time, Relaxed);
            self.post(&worker.seat);
        }
    }

    fn answer_messages(&self, seat: &Seat) {
        loop {
            seat.word.store(BLOCKED, SeqCst);
            self.wake_all(seat);
            if self.over() {
                return self.wake_all(seat);
            }
            futex::wait(&self.futex, &seat.word);
        }
    }

    /// Pushes a request that was due at `due` to a worker and wakes it.
    fn ask(&self, worker: &Worker, due: u64) {
        self.sent.fetch_add(1, Relaxed);
        worker.seat.queue.push(due);
        worker.seat.wake_us.store(clock::us(), Relaxed);
        self.post(&worker.seat);
    }

    /// As the original: the requests of a second at once, then nothing until it is over.
    fn pace_as_original(&self, workers: &[Worker]) {
        let mut turn = 0;
        while !self.over() {
            let end = clock::ns() + 1_000_000_000;
            let mut sent = 0;
            while sent < self.goal.load(Relaxed) && !self.over() {
                sent += 1;
                let now = clock::ns();
                let worker = &workers[turn % workers.len()];
                turn += 1;
                let pending = worker.seat.pending.load(SeqCst);
                if pending > PENDING {
                    self.left_out.fetch_add(1, Relaxed);
                    std::thread::sleep(Duration::from_micros(100));
                    continue;
                }
                // Not one addition: the worker's zero may be lost, as in the original.
                worker.seat.pending.store(pending + 1, SeqCst);
                self.ask(worker, now);
            }
            self.nap_until(end);
        }
    }

    /// Each request at its time, and none left out.
    fn pace_open(&self, workers: &[Worker]) {
        // SAFETY: takes numbers. Timers of this thread are not put off to be bundled.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        }
        let mut due = clock::ns() as f64;
        for worker in workers.iter().cycle() {
            self.nap_until(due as u64);
            if self.over() {
                return;
            }
            self.ask(worker, due as u64);
            due += 1e9 / f64::from(self.goal.load(Relaxed).max(1));
        }
    }

    /// Sleeps until then, or until the run is over.
    fn nap_until(&self, until: u64) {
        loop {
            let now = clock::ns();
            if now >= until || self.over() {
                return;
            }
            clock::sleep_until(until.min(now + NAP_NS));
        }
    }

    fn messenger(self: &Arc<Self>, index: usize, ready: &mpsc::Sender<Ready>) {
        let seat = &self.messengers[index];
        seat.tid.store(super::delay::own_tid(), Relaxed);
        let mut threads = Vec::with_capacity(self.plan.workers);
        let there = self.prepare(index, &mut threads);
        let failed = there.is_err();
        let _ = ready.send(there.map_err(|error| (threads.len(), error)));
        if failed {
            // The program ends; nobody waits for the threads that there are.
            return;
        }
        let workers = &self.workers[self.of(index)];
        match self.plan.paced.map(|paced| paced.how) {
            None => self.answer_messages(seat),
            Some(Pacing::Original) => self.pace_as_original(workers),
            Some(Pacing::Open) => self.pace_open(workers),
        }
        for worker in workers {
            self.post(&worker.seat);
        }
        for thread in threads {
            let _ = thread.join();
        }
        seat.delay_ns
            .store(super::delay::own().unwrap_or(0), Relaxed);
    }

    /// Starts the workers where they belong, and goes where this thread belongs.
    fn prepare(self: &Arc<Self>, index: usize, threads: &mut Vec<Thread>) -> io::Result<()> {
        if let Some(cpus) = &self.plan.worker_cpus {
            pin::bind_all(cpus).map_err(|why| io::Error::other(why.replace("--pin", "-W")))?;
        }
        for me in self.of(index) {
            let all = Arc::clone(self);
            let thread = Builder::new()
                .name("schbench-worker".to_owned())
                .stack_size(STACK)
                .spawn(move || all.worker(me, index))?;
            threads.push(thread);
        }
        if let Some(cpus) = &self.plan.message_cpus {
            let cpu = cpus[index % cpus.len()];
            pin::bind(cpu).map_err(|why| io::Error::other(why.replace("--pin", "-M")))?;
        }
        Ok(())
    }

    /// Asks the message thread for something to do, and waits. With a pace: what there is to do, if anything.
    fn ask_and_wait(&self, me: usize, messenger: &Seat) -> Chain {
        let worker = &self.workers[me];
        let seat = &worker.seat;
        if self.plan.pipe.is_some() {
            worker.page.fill(2);
        }
        seat.word.store(BLOCKED, SeqCst);
        seat.wake_us.store(clock::us(), Relaxed);
        if self.plan.paced.is_some() {
            seat.pending.store(0, SeqCst);
            let chain = seat.queue.take();
            if !chain.is_empty() {
                seat.word.store(RUNNING, SeqCst);
                return chain;
            }
        } else {
            self.join_list(messenger, me);
        }
        self.post(messenger);
        if !self.over() {
            futex::wait(&self.futex, &seat.word);
        }
        let slept = clock::us().saturating_sub(seat.wake_us.load(Relaxed));
        // Who is woken to leave has waited for nothing. (The original counts it.)
        if slept > 0 && !self.over() {
            worker.wakeup.add(slept);
        }
        Chain::empty()
    }

    fn worker(&self, me: usize, messenger: usize) {
        let (messenger, worker) = (&self.messengers[messenger], &self.workers[me]);
        worker.seat.tid.store(super::delay::own_tid(), Relaxed);
        let plan = &self.plan;
        let mut desk =
            (plan.operations > 0).then(|| Desk::new(plan.edge, self.common.clone(), plan.split));
        let start = clock::us();
        while !self.over() {
            let chain = self.ask_and_wait(me, messenger);
            if plan.paced.is_none() {
                self.request(worker, &mut desk, start, None);
                continue;
            }
            let open = plan.paced.is_some_and(|paced| paced.how == Pacing::Open);
            for request in chain {
                // What is left of an open queue is counted by who ends the run.
                if open && self.over() {
                    worker.seat.queue.push(request.due);
                    continue;
                }
                self.request(worker, &mut desk, start, open.then_some(request.due / 1000));
            }
        }
        worker.busy_us.store(clock::us() - start, Relaxed);
        worker
            .seat
            .delay_ns
            .store(super::delay::own().unwrap_or(0), Relaxed);
    }

    /// Answers one request: its clock starts at `due`, or where the original's does.
    fn request(&self, worker: &Worker, desk: &mut Option<Desk>, start: u64, due: Option<u64>) {
        let plan = &self.plan;
        let mut began = clock::us();
        if !plan.sleep.is_zero() {
            std::thread::sleep(plan.sleep);
            if plan.calibrate {
                began = clock::us();
            }
        }
        if let Some(desk) = desk {
            desk.work(plan.operations, plan.locking.then_some(&self.locks));
        }
        let now = clock::us();
        worker.busy_us.store(now - start, Relaxed);
        worker.loops.store(worker.loops.load(Relaxed) + 1, Relaxed);
        let took = now.saturating_sub(due.unwrap_or(began));
        if took > 0 {
            worker.request.add(took);
        }
    }
}

/// A crew at work.
#[derive(Debug)]
pub(super) struct Running<F> {
    pub(super) crew: Arc<Crew<F>>,
    threads: Vec<Option<Thread>>,
    ready: mpsc::Receiver<Ready>,
    /// Message threads whose workers are there.
    prepared: usize,
}

impl<F: Futex> Running<F> {
    /// Starts the message threads; they start their workers, which begin at once.
    pub(super) fn start(crew: Crew<F>) -> Result<Self, (usize, io::Error)> {
        let crew = Arc::new(crew);
        let (tell, ready) = mpsc::channel();
        let mut threads = Vec::with_capacity(crew.plan.messengers);
        for index in 0..crew.plan.messengers {
            let (all, tell) = (Arc::clone(&crew), tell.clone());
            let thread = Builder::new()
                .name("schbench-msg".to_owned())
                .stack_size(STACK)
                .spawn(move || all.messenger(index, &tell))
                .map_err(|error| (index, error))?;
            threads.push(Some(thread));
        }
        Ok(Running {
            crew,
            threads,
            ready,
            prepared: 0,
        })
    }

    /// Whether all workers are there by now; or how many threads there are, and why no more.
    pub(super) fn is_ready(&mut self) -> Result<bool, (usize, io::Error)> {
        while self.prepared < self.threads.len() {
            let there = self.threads.len() + self.prepared * self.crew.plan.workers;
            match self.ready.try_recv() {
                Ok(Ok(())) => self.prepared += 1,
                Ok(Err((workers, error))) => return Err((there + workers, error)),
                Err(mpsc::TryRecvError::Empty) => return Ok(false),
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Err((there, io::Error::other("a message thread ended")));
                }
            }
        }
        Ok(true)
    }

    /// Ends the run and waits for all threads; or why they were not all there.
    pub(super) fn stop(mut self) -> Result<Arc<Crew<F>>, (usize, io::Error)> {
        self.crew.stopping.store(true, SeqCst);
        for (seat, thread) in self.crew.messengers.iter().zip(self.threads.iter_mut()) {
            self.crew.post(seat);
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
        self.is_ready()?;
        Ok(self.crew)
    }
}

impl<F> Crew<F> {
    /// Requests that nobody answered, each counted with its age at `now`: how many, and the age of the oldest in
    /// microseconds. All threads have ended.
    pub(super) fn count_unanswered(&self, now: u64) -> (u64, u64) {
        let (mut count, mut oldest) = (0, 0);
        for worker in &self.workers {
            for request in worker.seat.queue.take() {
                let age = now.saturating_sub(request.due) / 1000;
                worker.request.add(age.max(1));
                (count, oldest) = (count + 1, oldest.max(age));
            }
        }
        (count, oldest)
    }
}

impl Chain {
    fn empty() -> Self {
        Queue::default().take()
    }
}
