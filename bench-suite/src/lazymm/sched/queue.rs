//! Floor 3, bench-suite. Owns which task a CPU runs next and when it execs: its own run queue. Touches nothing.
//!
//! A CPU's tasks are kernel threads without number and one user task of each process. The share of kernel threads is
//! kept exactly and evenly: of a hundred switches so many go to one; at 50 every other, as when a pair of tasks blocks
//! in turns and the CPU idles between. Among the processes the choice is drawn, from a seed of the CPU's own.

use super::cpu::Task;

/// One CPU's.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    share: u32,
    /// Hundredths of a kernel thread that are due.
    due: u32,
    processes: u32,
    state: u64,
    exit_every: u64,
    until_exec: u64,
}

impl Queue {
    /// Of CPU `index`.
    pub(super) fn new(settings: &super::machine::Settings, index: usize) -> Self {
        // Not all CPUs exec at the same switch.
        let stagger = match settings.exit_every {
            0 => 0,
            every => index as u64 * every / settings.cpus as u64,
        };
        Queue {
            share: settings.kthread_share,
            due: 0,
            processes: settings.mms as u32,
            // Never 0, and other for each CPU.
            state: (settings.seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1,
            exit_every: settings.exit_every,
            until_exec: match settings.exit_every {
                0 => u64::MAX,
                every => every + stagger,
            },
        }
    }

    /// Who runs after `current`.
    #[inline(always)]
    pub(super) fn next(&mut self, current: Task) -> Task {
        self.until_exec = self.until_exec.saturating_sub(1);
        self.due += self.share;
        if self.due >= 100 {
            self.due -= 100;
            return Task::Kernel;
        }
        match (self.processes, current) {
            (1, _) => Task::User(0),
            (count, Task::Kernel) => Task::User(self.draw(count)),
            // Another one.
            (count, Task::User(now)) => Task::User((now + 1 + self.draw(count - 1)) % count),
        }
    }

    /// Whether the current user task is to exec now.
    #[inline(always)]
    pub(super) fn execs(&mut self) -> bool {
        let now = self.until_exec == 0;
        if now {
            self.until_exec = self.exit_every;
        }
        now
    }

    /// One of `0..count`, by xorshift.
    #[inline(always)]
    fn draw(&mut self, count: u32) -> u32 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        // The high bits are the better ones.
        (((self.state >> 32) * u64::from(count)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::irq::Ipi;
    use super::super::machine::Settings;
    use super::*;

    fn settings(kthread_share: u32, mms: usize, exit_every: u64) -> Settings {
        Settings {
            cpus: 2,
            kthread_share,
            mms,
            exit_every,
            work: 0,
            ipi: Ipi::Mailbox,
            seed: 1,
        }
    }

    fn run(queue: &mut Queue, switches: usize) -> Vec<Task> {
        let mut current = Task::Kernel;
        let step = |_| {
            current = queue.next(current);
            current
        };
        (0..switches).map(step).collect()
    }

    #[test]
    fn the_share_is_kept() {
        for share in [0, 1, 25, 50, 75, 100] {
            let tasks = run(&mut Queue::new(&settings(share, 3, 0), 0), 1000);
            let kernel = tasks.iter().filter(|&&task| task == Task::Kernel).count();
            assert_eq!(kernel, share as usize * 10);
        }
        let half = run(&mut Queue::new(&settings(50, 1, 0), 0), 4);
        let user = Task::User(0);
        assert_eq!(half, [user, Task::Kernel, user, Task::Kernel]);
    }

    #[test]
    fn user_tasks_take_turns_and_all_run() {
        let tasks = run(&mut Queue::new(&settings(0, 4, 0), 1), 1000);
        assert!(tasks.windows(2).all(|two| two[0] != two[1]));
        for process in 0..4 {
            let runs = tasks
                .iter()
                .filter(|&&task| task == Task::User(process))
                .count();
            assert!((150..350).contains(&runs), "{process}: {runs}");
        }
    }

    #[test]
    fn cpus_choose_differently_and_repeatably() {
        let of = |cpu| run(&mut Queue::new(&settings(0, 8, 0), cpu), 50);
        assert_eq!(of(0), of(0));
        assert_ne!(of(0), of(1));
    }

    #[test]
    fn execs_come_as_often_as_asked() {
        let execs = |every, cpu| {
            let mut queue = Queue::new(&settings(50, 1, every), cpu);
            let mut step = |_: &usize| {
                queue.next(Task::Kernel);
                queue.execs()
            };
            (1..=20).filter(&mut step).collect::<Vec<_>>()
        };
        assert_eq!(execs(5, 0), [5, 10, 15, 20]);
        assert_eq!(execs(6, 1), [9, 15], "staggered");
        assert_eq!(execs(1, 1).len(), 20);
        assert!(execs(0, 0).is_empty());
    }
}
