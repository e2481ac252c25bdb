//! Floor 3, bench-suite. Owns the two pipes of a pair and how a byte goes through them; what happens round a blocking
//! read is left to the caller. May touch pipes and the limit of open files.
//!
//! ```text
//! owner    put ──there──▶ take    partner
//!          take ◀──back── put
//! ```

use crate::trouble::Trouble;
use std::io;

/// Files of a task: two pipes.
const FILES: usize = 4;

/// Stack of a task's thread.
pub(crate) const STACK: usize = 64 * 1024;

/// Raises the limit of open files as far as `tasks` need it.
pub(crate) fn allow_files(tasks: usize) -> Result<(), Trouble> {
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
pub(super) struct Pipe {
    read: libc::c_int,
    write: libc::c_int,
}

impl Pipe {
    pub(super) fn new() -> io::Result<Self> {
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

    /// To wait for.
    pub(super) fn read_end(&self) -> libc::c_int {
        self.read
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
    pub(super) fn put(&self) -> bool {
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

/// For processes that leave without dropping their pipes.
fn close(end: libc::c_int) {
    // SAFETY: takes a number; the process uses this end no more.
    unsafe {
        libc::close(end);
    }
}

/// What a task does round its messages.
pub(crate) trait Around {
    /// It is about to wake the other one.
    fn waking(&mut self) {}

    /// Its turn to wait: calls `read`, which blocks, and says what came of it.
    fn waiting(&mut self, read: impl FnOnce() -> bool) -> bool {
        read()
    }
}

/// The original does nothing.
impl Around for () {}

/// The pipes of a pair.
pub(crate) struct Pipes {
    there: Pipe,
    back: Pipe,
}

impl Pipes {
    /// Two new ones.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Pipes {
            there: Pipe::new()?,
            back: Pipe::new()?,
        })
    }

    /// The owner's part: one round trip. `false` if the partner has gone.
    #[inline]
    pub(crate) fn hand_over(&self, around: &mut impl Around) -> bool {
        around.waking();
        self.there.put() && around.waiting(|| self.back.take())
    }

    /// The partner's part, until the owner hangs up.
    pub(crate) fn answer(&self, around: &mut impl Around) {
        while around.waiting(|| self.there.take()) {
            around.waking();
            if !self.back.put() {
                break;
            }
        }
    }

    /// In the owner's process: keeps its own ends only, so that it learns when its partner dies.
    pub(super) fn keep_owners(&self) {
        close(self.there.read);
        close(self.back.write);
    }

    /// In the partner's process: the same the other way round.
    pub(super) fn keep_partners(&self) {
        close(self.there.write);
        close(self.back.read);
    }

    /// Ends the partner's next read. Nothing goes there afterwards.
    pub(crate) fn hang_up(&self) {
        // SAFETY: an end of this pair's pipe; `Pipe` closes the number of a file that is one again.
        unsafe {
            libc::dup2(self.back.read, self.there.write);
        }
    }
}
