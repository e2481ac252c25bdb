//! Floor 3, bench-suite. Owns the requests that a worker of `schbench` has yet to answer: a list that others push to
//! and its owner takes whole. Touches nothing else.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One request, allocated by who asks and freed by who answers, as in the original.
#[derive(Debug)]
pub(super) struct Request {
    /// When it was due, in nanoseconds.
    pub(super) due: u64,
    next: *mut Request,
}

/// Requests by age, the youngest first; pushed to by any thread, taken by the owner.
#[derive(Debug, Default)]
pub(super) struct Queue(AtomicPtr<Request>);

impl Queue {
    /// Adds a request that was due at `due`.
    pub(super) fn push(&self, due: u64) {
        let new = Box::into_raw(Box::new(Request {
            due,
            next: ptr::null_mut(),
        }));
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: nobody else knows `new` yet.
            unsafe { (*new).next = head };
            // SeqCst: releases the request to `take`, and stands before the post that follows (see `futex`).
            match self
                .0
                .compare_exchange_weak(head, new, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all, the oldest first.
    pub(super) fn take(&self) -> Chain {
        // SeqCst: acquires what `push` released, and stands behind the store of the word (see `futex`).
        let mut list = self.0.swap(ptr::null_mut(), Ordering::SeqCst);
        let mut turned = ptr::null_mut();
        while !list.is_null() {
            // SAFETY: the swap made this thread the only owner of the list, whose members came from `Box::into_raw`.
            let next = unsafe { std::mem::replace(&mut (*list).next, turned) };
            turned = list;
            list = next;
        }
        Chain(turned)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Requests that were taken.
#[derive(Debug)]
pub(super) struct Chain(*mut Request);

impl Chain {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_null()
    }
}

impl Iterator for Chain {
    type Item = Box<Request>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the chain owns its members, which came from `Box::into_raw`; this one leaves it.
        let request = unsafe { Box::from_raw(self.0) };
        self.0 = request.next;
        Some(request)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_comes_first() {
        let queue = Queue::default();
        assert!(queue.take().is_empty());
        (1..=5).for_each(|due| queue.push(due));
        let mut chain = queue.take();
        assert_eq!(chain.next().unwrap().due, 1);
        assert_eq!(chain.map(|r| r.due).collect::<Vec<_>>(), [2, 3, 4, 5]);
        queue.push(6);
        drop(queue);
    }

    #[test]
    fn none_is_lost_between_threads() {
        let queue = Queue::default();
        let mut seen = vec![0; 4000];
        std::thread::scope(|scope| {
            let pushers: Vec<_> = (0..4)
                .map(|n| {
                    let queue = &queue;
                    scope.spawn(move || (0..1000).for_each(|i| queue.push(n * 1000 + i)))
                })
                .collect();
            while !pushers.iter().all(|pusher| pusher.is_finished()) {
                queue.take().for_each(|r| seen[r.due as usize] += 1);
            }
            queue.take().for_each(|r| seen[r.due as usize] += 1);
        });
        assert!(seen.iter().all(|&times| times == 1));
    }
}
