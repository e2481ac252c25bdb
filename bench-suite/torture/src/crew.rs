//! The threads of a run: readers, writers, and those that disturb them.
//!
//! Floor 3. Owns no element and no count, only what each thread does.

use crate::cpus;
use crate::dice::Dice;
use crate::flavours::{Flavour, Parcel};
use crate::handler;
use crate::plan::Dimension;
use crate::world::{Context, Sight, Step, World};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What is handed over.
pub(crate) struct Sent {
    sight: Sight,
    _hold: Box<dyn Send>,
}

pub(crate) type Sender = mpsc::SyncSender<Sent>;

/// Updates after which a writer reclaims what it can.
const FLUSH: u64 = 128;

/// Reads of a reader that comes and goes.
const SHORT: usize = 50;

fn one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Something between two looks.
fn dwell(world: &World, me: &Context, dice: &mut Dice) {
    let sleep = world.plan.has(Dimension::Sleep);
    let nap = |time| {
        me.note(world, Step::Sleep);
        one(&world.counts.sleeps);
        thread::sleep(time);
    };
    match dice.roll(3000) {
        0 if sleep => nap(Duration::from_millis(5)),
        1..6 if sleep => nap(Duration::from_micros(200)),
        6..20 => thread::yield_now(),
        n => (0..n % 32).for_each(|_| std::hint::spin_loop()),
    }
}

/// Reads in all ways until `rounds` are done or the run ends.
fn read<F: Flavour>(
    flavour: &F,
    world: &World,
    me: &Context,
    seed: u64,
    rounds: usize,
    elsewhere: Option<&Sender>,
) {
    let mut dice = Dice::new(seed);
    let mut mine = flavour.begin();
    let counts = &world.counts;
    let starve = world.plan.has(Dimension::Starve);
    let here = || {
        me.note(world, Step::Handler);
        one(&counts.in_handler);
        flavour.in_handler(&mut |element| {
            let sight = me.first(world, element);
            std::hint::spin_loop();
            me.again(world, &sight);
        });
    };
    handler::with(&here, || {
        for _ in 0..rounds {
            if !world.running() {
                break;
            }
            if world.paused() {
                me.note(world, Step::Pause);
                flavour.outside(&mut mine, &mut || world.stutter());
            }
            match dice.roll(64) {
                0 if starve => {
                    me.note(world, Step::Many);
                    one(&counts.starved);
                    flavour.many(&mut mine, 9 + dice.roll(32) as usize, &mut |elements| {
                        let sights: Vec<_> = elements.iter().map(|e| me.first(world, e)).collect();
                        dwell(world, me, &mut dice);
                        for sight in &sights {
                            me.again(world, sight);
                        }
                    });
                }
                1..4 if elsewhere.is_some() => {
                    me.note(world, Step::HandOver);
                    if let Some(Parcel { element, hold }) = flavour.parcel(&mut mine)
                        && let Some(elsewhere) = elsewhere
                    {
                        let sight = me.first(world, element);
                        // Full: the reader releases it itself.
                        let _ = elsewhere.try_send(Sent { sight, _hold: hold });
                    }
                }
                _ => {
                    let how = dice.roll(F::READS.len() as u64) as usize;
                    me.note(world, Step::Read);
                    flavour.inside(&mut mine, how, &mut |element| {
                        one(&counts.reads[how]);
                        let sight = me.first(world, element);
                        dwell(world, me, &mut dice);
                        me.again(world, &sight);
                        if dice.roll(8) == 0 {
                            dwell(world, me, &mut dice);
                            me.again(world, &sight);
                        }
                    });
                    me.note(world, Step::ReadEnd);
                }
            }
            // Also so that few CPUs have time for the writers.
            if dice.roll(60) == 0 {
                me.note(world, Step::Rest);
                flavour.outside(&mut mine, &mut || thread::sleep(Duration::from_micros(300)));
            }
        }
    });
}

/// A reader that is there all the time.
pub(crate) fn reader<F: Flavour>(
    flavour: &F,
    world: &World,
    me: &Context,
    seed: u64,
    elsewhere: Option<&Sender>,
) {
    me.tid.store(cpus::gettid(), Ordering::Relaxed);
    read(flavour, world, me, seed, usize::MAX, elsewhere);
    me.tid.store(0, Ordering::Relaxed);
}

/// Readers that come and go, one after the other.
pub(crate) fn churn<F: Flavour>(
    flavour: &'static F,
    world: &'static World,
    me: &Arc<Context>,
    seed: u64,
    elsewhere: Option<&Sender>,
) {
    let mut dice = Dice::new(seed);
    while world.running() {
        world.stutter();
        let (short, elsewhere, seed) = (Arc::clone(me), elsewhere.cloned(), dice.roll(u64::MAX));
        let life = thread::Builder::new().stack_size(256 << 10).spawn(move || {
            short.note(world, Step::Begin);
            read(flavour, world, &short, seed, SHORT, elsewhere.as_ref());
        });
        // (A machine may refuse one now and then.)
        if life.is_ok_and(|life| life.join().is_ok()) {
            one(&world.counts.churned);
        }
    }
}

/// Releases what others protect, later.
pub(crate) fn release(world: &World, me: &Context, parcels: &mpsc::Receiver<Sent>) {
    let mut late: VecDeque<Sent> = VecDeque::new();
    let mut dice = Dice::new(world.plan.seed ^ 0x4A);
    let give_up = |parcel: Sent| {
        me.note(world, Step::Release);
        me.again(world, &parcel.sight);
        one(&world.counts.handed_over);
        drop(parcel);
    };
    for parcel in parcels {
        me.note(world, Step::TakeOver);
        me.again(world, &parcel.sight);
        late.push_back(parcel);
        if dice.roll(64) == 0 {
            thread::sleep(Duration::from_micros(300));
        }
        while late.len() > 3
            && let Some(oldest) = late.pop_front()
        {
            give_up(oldest);
        }
        // What is newest may not come for a while: nothing is held for ever.
        if world.paused() || !world.running() {
            late.drain(..).for_each(give_up);
        }
    }
    late.drain(..).for_each(give_up);
}

/// Replaces what is published, over and over.
pub(crate) fn writer<F: Flavour>(flavour: &F, world: &World, me: &Context, seed: u64) {
    let mut dice = Dice::new(seed);
    me.tid.store(cpus::gettid(), Ordering::Relaxed);
    for n in 1u64.. {
        if !world.running() {
            break;
        }
        if world.paused() {
            me.note(world, Step::Pause);
            world.stutter();
        }
        let Some(element) = world.take(|| {
            me.note(world, Step::Rest);
            flavour.flush();
        }) else {
            break;
        };
        let how = dice.roll(F::UPDATES.len() as u64) as usize;
        me.note(world, Step::Update);
        one(&world.counts.updates[how]);
        flavour.update(element, how);
        if n.is_multiple_of(FLUSH) {
            flavour.flush();
        }
        if dice.roll(4) == 0 {
            thread::sleep(Duration::from_micros(dice.roll(200)));
        }
    }
    me.tid.store(0, Ordering::Relaxed);
}

/// One of them, by the kernel's number; none if it has ended or not begun.
fn any(threads: &[Arc<Context>], dice: &mut Dice) -> Option<libc::pid_t> {
    let who = &threads[dice.roll(threads.len() as u64) as usize];
    Some(who.tid.load(Ordering::Relaxed)).filter(|tid| *tid != 0)
}

/// Moves threads from CPU to CPU.
pub(crate) fn shuffle(world: &World, threads: &[Arc<Context>]) {
    let cpus = cpus::allowed();
    let mut dice = Dice::new(world.plan.seed ^ 0x5F);
    while world.running() {
        let cpu = cpus[dice.roll(cpus.len() as u64) as usize];
        if any(threads, &mut dice).is_some_and(|tid| cpus::set(tid, &[cpu]).is_ok()) {
            one(&world.counts.moved);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Interrupts readers.
pub(crate) fn interrupt(world: &World, readers: &[Arc<Context>]) {
    let mut dice = Dice::new(world.plan.seed ^ 0x16);
    while world.running() {
        if let Some(tid) = any(readers, &mut dice) {
            handler::interrupt(tid);
        }
        thread::sleep(Duration::from_micros(300));
    }
}

/// Pauses everybody now and then.
pub(crate) fn stutter(world: &World) {
    while world.running() {
        thread::sleep(Duration::from_millis(40));
        world.set_pause(true);
        thread::sleep(Duration::from_millis(10));
        world.set_pause(false);
        one(&world.counts.stutters);
    }
}
