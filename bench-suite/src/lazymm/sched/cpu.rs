//! Floor 3, bench-suite. Owns a simulated CPU: its run queue, its switches, what exits and tears down on it, and how it
//! answers interrupts. May touch the machine and the tracker.
//!
//! | switch | tracker | mm |
//! |---|---|---|
//! | user → user | the CPU runs in the next mm | changes |
//! | user → kernel | grab | stays: borrowed |
//! | kernel → kernel | nothing | passed along |
//! | kernel → user | the CPU runs in the next mm; after the stack switch, drop of the one before | changes |
//! | exit | grab: the task goes on as a kernel thread until its last switch | stays: borrowed |
//!
//! All of these are done with interrupts off; tearing down, which waits for other CPUs, with interrupts on. The state
//! that interrupts change (current task, mm, what is held) is reached through a [`Region`] only; the CPU's state in the
//! tracker is never touched by an interrupt, so that it may be in use while one comes.
//!
//! Checked here: I1 at each switch and in the work, I3 where the owner of the loop asks, I2 after each tear-down and by
//! the second interrupt.

use super::super::mm::Mm;
use super::super::tracker::{Interrupts, Tracker};
use super::irq::{Here, Request, What};
use super::machine::{INIT, Machine, Shown};
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

/// Who runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// A kernel thread, or what is left of a task that has exited.
    Kernel,
    /// The task of this process on this CPU.
    User(u32),
}

/// What interrupts change.
struct State<'m, T: Tracker + 'm> {
    current: Task,
    /// `active_mm`: that of the current user task, or borrowed.
    mm: NonNull<Mm<T>>,
    /// What the grab left, while the mm is borrowed and not the kernel's.
    held: Option<T::Held<'m>>,
}

/// Interrupts are off, and the state is at hand.
struct Region<'c, 'm, T: Tracker>(&'c Cpu<'m, T>);

impl<'m, T: Tracker> Deref for Region<'_, 'm, T> {
    type Target = State<'m, T>;

    #[inline(always)]
    fn deref(&self) -> &State<'m, T> {
        // SAFETY: one region is entered at a time on this thread, and interrupts keep out of it.
        unsafe { &*self.0.state.get() }
    }
}

impl<'m, T: Tracker> DerefMut for Region<'_, 'm, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut State<'m, T> {
        // SAFETY: as above.
        unsafe { &mut *self.0.state.get() }
    }
}

impl<T: Tracker> Drop for Region<'_, '_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let line = &self.0.shown.line;
        line.on(|what, address| self.0.answer(what, address));
    }
}

/// Interrupts that were sent, on the sender.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sent {
    /// To let go, to other CPUs.
    pub(super) shots: u64,
    /// To let go, to itself: a call.
    pub(super) own: u64,
    /// To ask whether it has let go, to other CPUs.
    pub(super) checks: u64,
}

/// Of one task, if there is one.
type TaskMm<T> = Cell<Option<NonNull<Mm<T>>>>;

/// One CPU, on the stack of the thread that plays it.
pub(super) struct Cpu<'m, T: Tracker> {
    machine: &'m Machine<T>,
    index: usize,
    shown: &'m Shown,
    state: UnsafeCell<State<'m, T>>,
    tracked: UnsafeCell<T::Cpu<'m>>,
    /// The mm of each process's task on this CPU, where there is one.
    tasks: Box<[TaskMm<T>]>,
    sent: Cell<Sent>,
    grabs: Cell<u64>,
}

impl<'m, T: Tracker> Cpu<'m, T> {
    /// CPU `index` at rest: a kernel thread runs in the kernel's mm.
    pub(super) fn new(machine: &'m Machine<T>, index: usize) -> Self {
        Cpu {
            machine,
            index,
            shown: &machine.cpus[index],
            state: UnsafeCell::new(State {
                current: Task::Kernel,
                mm: machine.init,
                held: None,
            }),
            tracked: UnsafeCell::new(machine.tracker.cpu(index)),
            tasks: machine.processes.iter().map(|_| Cell::new(None)).collect(),
            sent: Cell::default(),
            grabs: Cell::new(0),
        }
    }

    /// For the signal handler of this thread.
    pub(super) fn here(&self) -> Here {
        unsafe fn call<T: Tracker>(data: *const ()) {
            // SAFETY: as `here` says; the thread's own CPU.
            let cpu = unsafe { &*data.cast::<Cpu<'_, T>>() };
            cpu.take();
        }
        Here {
            line: &raw const self.shown.line,
            call: call::<T>,
            data: ptr::from_ref(self).cast(),
        }
    }

    /// Interrupts that this CPU sent.
    pub(super) fn sent(&self) -> Sent {
        self.sent.get()
    }

    /// Who runs, for the owner of the run queue.
    pub(super) fn current(&self) -> Task {
        self.off().current
    }

    /// Grabs that this CPU made.
    pub(super) fn grabs(&self) -> u64 {
        self.grabs.get()
    }

    /// Interrupts are off as long as the result lives. Not nested.
    #[inline(always)]
    fn off(&self) -> Region<'_, 'm, T> {
        self.shown.line.off();
        Region(self)
    }

    /// Does what is in the inbox.
    #[cold]
    fn take(&self) {
        let line = &self.shown.line;
        line.off();
        line.take(&|what, address| self.answer(what, address));
        line.on(|what, address| self.answer(what, address));
    }

    /// Where a CPU without signals listens.
    #[inline(always)]
    pub(super) fn poll(&self) {
        if self.shown.line.polled() {
            self.take();
        }
    }

    /// One interrupt, with interrupts off and outside of [`off`](Self::off).
    fn answer(&self, what: What, address: NonNull<()>) {
        // SAFETY: regions are over, and this one is alone.
        let state = unsafe { &mut *self.state.get() };
        let mm = address.cast::<Mm<T>>();
        let (has, slot) = (state.mm == mm, self.machine.tracker.slot(self.index));
        match what {
            What::Shoot if has && state.current == Task::Kernel => {
                self.to_init(state);
                if let Some(held) = state.held.take() {
                    // SAFETY: from the grab of this mm on this CPU, given back here.
                    unsafe { self.machine.tracker.interrupted(self.index, mm, held) };
                }
            }
            // A user task in an mm without users.
            What::Shoot if has => self.machine.invariants.broken(2, 1),
            What::Shoot => {}
            What::Check => {
                let left = has || slot == Some(mm.as_ptr().cast_const());
                self.machine.invariants.broken(2, u64::from(left));
            }
        }
    }

    /// `switch_mm(mm, &init_mm)`.
    fn to_init(&self, state: &mut State<'m, T>) {
        state.mm = self.machine.init;
        self.shown.has(INIT);
    }

    /// I1.
    #[inline(always)]
    fn look(&self, state: &State<'m, T>) {
        // SAFETY: what is borrowed lives, if the tracker is right; if it is not, the block is kept for a while.
        if !unsafe { state.mm.as_ref() }.is_alive() {
            self.machine.invariants.broken(1, 1);
        }
    }

    /// I3. Not at each switch: it would read the slot that a switch only writes, and that costs as much as the rest.
    #[inline(always)]
    pub(super) fn look_at_slot(&self) {
        let region = self.off();
        if let Some(slot) = self.machine.tracker.slot(self.index) {
            let wanted = match region.held {
                Some(_) => region.mm.as_ptr().cast_const(),
                None => ptr::null(),
            };
            self.machine.invariants.broken(3, u64::from(slot != wanted));
        }
    }

    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the thread's own; see `SAFETY`")]
    fn tracked(&self) -> &mut T::Cpu<'m> {
        // SAFETY: used by calls into the tracker only, one at a time: interrupts do without, and a tear-down that waits
        // for others grabs and drops nothing.
        unsafe { &mut *self.tracked.get() }
    }

    /// `context_switch`, and the switch's share of work.
    #[inline(always)]
    pub(super) fn switch(&self, next: Task) {
        let next_mm = match next {
            Task::Kernel => None,
            Task::User(process) => Some(
                self.tasks[process as usize]
                    .get()
                    .unwrap_or_else(|| self.birth(process)),
            ),
        };
        let mut region = self.off();
        let state = &mut *region;
        self.look(state);
        match (state.current, next_mm) {
            (Task::Kernel, None) => {}
            (Task::User(_), None) => self.grab(state),
            (Task::User(_), Some(mm)) => self.run_user(state, mm),
            (Task::Kernel, Some(mm)) => {
                let prev = (state.mm, state.held.take());
                self.run_user(state, mm);
                // The stack switch; the rest is `finish_task_switch`.
                compiler_fence(SeqCst);
                if let (prev, Some(held)) = prev {
                    // SAFETY: from the grab of this mm on this CPU, given back here.
                    unsafe { self.machine.tracker.drop(self.tracked(), prev, held) };
                }
            }
        }
        state.current = next;
        drop(region);
        self.work(next);
    }

    #[inline(always)]
    fn grab(&self, state: &mut State<'m, T>) {
        self.grabs.set(self.grabs.get() + 1);
        // SAFETY: the current task is a user of the mm until this has returned.
        state.held = Some(unsafe { self.machine.tracker.grab(self.tracked(), state.mm) });
    }

    #[inline(always)]
    fn run_user(&self, state: &mut State<'m, T>, mm: NonNull<Mm<T>>) {
        state.mm = mm;
        // SAFETY: the task is a user of the mm.
        unsafe {
            self.shown.has(mm.as_ref().serial());
            self.machine.tracker.run_user(self.tracked(), mm);
        }
    }

    #[inline(always)]
    fn work(&self, task: Task) {
        for _ in 0..self.machine.settings.work {
            self.look(&self.off());
            if task == Task::Kernel {
                self.poll();
            }
        }
    }

    /// A task of `process` is born on this CPU.
    #[cold]
    fn birth(&self, process: u32) -> NonNull<Mm<T>> {
        let mm = self.machine.processes[process as usize].join();
        self.tasks[process as usize].set(Some(mm));
        mm
    }

    /// The mm of the task of `process` on this CPU, if it has one and the process has another by now.
    #[inline(always)]
    pub(super) fn is_behind(&self, process: u32) -> bool {
        let process_of = &self.machine.processes[process as usize];
        self.tasks[process as usize]
            .get()
            .is_some_and(|mm| process_of.has_left(mm))
    }

    /// `exit_mm` of the current task, which is that of `process`.
    #[cold]
    pub(super) fn exit(&self, process: u32) {
        let mm = self.tasks[process as usize]
            .take()
            .expect("the current task has an mm");
        let mut region = self.off();
        debug_assert_eq!(region.current, Task::User(process));
        self.grab(&mut region);
        region.current = Task::Kernel;
        drop(region);
        self.leave(mm);
    }

    /// The current task, which is that of `process`, execs: the process gets a new mm, and the task exits.
    #[cold]
    pub(super) fn exec(&self, process: u32) {
        let machine = self.machine;
        let mm = self.tasks[process as usize]
            .get()
            .expect("the current task has an mm");
        let first = machine.processes[process as usize].exec(mm, &machine.tracker, machine.census);
        self.exit(process);
        if first {
            self.leave(mm);
        }
    }

    /// The process ends, after all its tasks.
    pub(super) fn end(&self, process: u32) {
        if let Some(mm) = self.machine.processes[process as usize].end() {
            self.leave(mm);
        }
    }

    /// A user leaves; the last one tears down (`mmput`).
    fn leave(&self, mm: NonNull<Mm<T>>) {
        // SAFETY: the caller is a user.
        let last = unsafe { mm.as_ref() }.leave();
        if !last {
            return;
        }
        // SAFETY: nobody frees it before the tear-down.
        let serial = unsafe { mm.as_ref() }.serial();
        // SAFETY: as above.
        unsafe { mm.as_ref() }.torn();
        let freed = self.machine.census.freed();
        // SAFETY: the last user has left, and only users grab.
        unsafe {
            self.machine
                .tracker
                .tear_down(self.tracked(), mm, &mut Sender(self))
        };
        if T::FREES_AT_ONCE {
            self.machine.nobody_has(serial, mm.as_ptr(), freed);
        }
    }

    /// All tasks of this CPU exit, one by one.
    pub(super) fn exit_all(&self) {
        for process in 0..self.tasks.len() as u32 {
            if self.tasks[process as usize].get().is_some() {
                self.switch(Task::User(process));
                self.exit(process);
            }
        }
    }

    /// The CPU goes over to the kernel's mm for good.
    pub(super) fn rest(&self) {
        let mut region = self.off();
        let state = &mut *region;
        self.look(state);
        let mm = state.mm;
        self.to_init(state);
        if let Some(held) = state.held.take() {
            // SAFETY: from the grab of this mm on this CPU, given back here.
            unsafe { self.machine.tracker.drop(self.tracked(), mm, held) };
        }
        drop(region);
        self.look_at_slot();
    }

    /// Lets the scheme free what it can.
    pub(super) fn flush(&self) {
        self.machine.tracker.flush(self.tracked());
    }

    /// Waits for an answer; answers others meanwhile.
    fn wait(&self, request: &Request) {
        let mut turns = 0_u32;
        while !request.is_done() {
            self.poll();
            turns += 1;
            if turns < PATIENCE {
                std::hint::spin_loop();
            } else {
                // The target may need this CPU.
                std::thread::yield_now();
            }
        }
    }
}

/// Turns of a wait before the thread lets others run.
const PATIENCE: u32 = 200;

/// Sends interrupts for a tear-down on this CPU.
struct Sender<'a, 'm, T: Tracker>(&'a Cpu<'m, T>);

impl<T: Tracker> Sender<'_, '_, T> {
    /// Interrupts another CPU.
    ///
    /// # Safety
    /// The request stays until it is answered.
    unsafe fn send(&self, what: What, target: usize, request: &Request) {
        // SAFETY: the caller's.
        unsafe { self.0.machine.cpus[target].line.send(request) };
        let mut sent = self.0.sent.get();
        match what {
            What::Shoot => sent.shots += 1,
            What::Check => sent.checks += 1,
        }
        self.0.sent.set(sent);
    }

    /// This CPU does it itself.
    fn call(&self, what: What, mm: NonNull<Mm<T>>) {
        let cpu = self.0;
        cpu.shown.line.off();
        cpu.answer(what, mm.cast());
        cpu.shown.line.on(|what, address| cpu.answer(what, address));
        if what == What::Shoot {
            let mut sent = cpu.sent.get();
            sent.own += 1;
            cpu.sent.set(sent);
        }
    }
}

impl<T: Tracker> Interrupts<T> for Sender<'_, '_, T> {
    fn let_go(&mut self, cpu: usize, mm: NonNull<Mm<T>>) {
        for what in [What::Shoot, What::Check] {
            if cpu == self.0.index {
                self.call(what, mm);
                continue;
            }
            let request = Request::new(what, mm.cast());
            // SAFETY: waited for on the next line.
            unsafe { self.send(what, cpu, &request) };
            self.0.wait(&request);
        }
    }

    fn let_all_go(&mut self, cpus: &[usize], mm: NonNull<Mm<T>>) {
        let others = || cpus.iter().filter(|&&target| target != self.0.index);
        for what in [What::Shoot, What::Check] {
            let requests: Vec<_> = others().map(|_| Request::new(what, mm.cast())).collect();
            for (request, &target) in requests.iter().zip(others()) {
                // SAFETY: all are waited for below.
                unsafe { self.send(what, target, request) };
            }
            if requests.len() < cpus.len() {
                self.call(what, mm);
            }
            requests.iter().for_each(|request| self.0.wait(request));
        }
    }
}
