//! A table of sessions that all threads use, and buffers that go round.
//!
//! ```text
//! cargo run -p hp --features structures --example sessions
//! ```
//!
//! Some threads log users in and out, others serve requests. Who serves one
//! looks the session up in a [`Map`] and keeps it for as long as the request
//! takes, also if the user logs out meanwhile: no lock, no reference count. The
//! answer is written into a buffer from a [`Stack`], which the next request
//! takes again.

use hp::Domain;
use hp::structures::{Map, Stack};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const USERS: u64 = 100;
const LOGINS: u64 = 20_000;
const SERVERS: usize = 2;

/// Sessions that were dropped.
static ENDED: AtomicU64 = AtomicU64::new(0);

struct Session {
    user: u64,
    name: String,
    requests: AtomicU64,
}

impl Session {
    fn new(user: u64) -> Self {
        Self {
            user,
            name: format!("user {user}"),
            requests: AtomicU64::new(0),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Server {
    sessions: Map<u64, Session>,
    buffers: Stack<String>,
}

impl Server {
    /// The answer's length, if the user is logged in.
    fn serve(&self, user: u64) -> Option<usize> {
        let session = self.sessions.get(&user)?;
        let mut answer = self.buffers.pop().unwrap_or_default();
        let number = session.requests.fetch_add(1, Ordering::Relaxed);
        answer.clear();
        answer.push_str("hello ");
        answer.push_str(&session.name);
        assert_eq!(session.user, user, "request {number} of another user");
        let length = answer.len();
        self.buffers.push(answer);
        Some(length)
    }
}

fn main() -> ExitCode {
    let server = Server::default();
    let over = AtomicBool::new(false);
    let (served, unknown) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut begun = 0;

    thread::scope(|scope| {
        for n in 0..SERVERS {
            let (server, over, served, unknown) = (&server, &over, &served, &unknown);
            scope.spawn(move || {
                let mut user = n as u64;
                while !over.load(Ordering::Relaxed) {
                    user = (user + 37) % USERS;
                    let counter = match server.serve(user) {
                        Some(_) => served,
                        None => unknown,
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for login in 0..LOGINS {
            let user = login * 7 % USERS;
            // A second login of one user takes the place of the first.
            drop(server.sessions.insert(user, Session::new(user)));
            begun += 1;
            if login % 3 == 0 {
                server.sessions.remove(&((user + 50) % USERS));
            }
        }
        over.store(true, Ordering::Relaxed);
    });

    let there = server.sessions.iter().count();
    let buffers = server.buffers.take_all().count();
    println!(
        "{begun} logins, {} requests served, {} of users that were not there; \
         {there} sessions left; {buffers} buffers for {SERVERS} servers",
        served.into_inner(),
        unknown.into_inner(),
    );
    let counted = server.sessions.len();
    drop(server);
    // Nobody holds a session any more, so that all are dropped now.
    Domain::global().drain();
    let ended = ENDED.load(Ordering::Relaxed);
    if ended == begun && counted == there && buffers <= SERVERS {
        ExitCode::SUCCESS
    } else {
        eprintln!("check failed: {ended} of {begun} sessions ended");
        ExitCode::FAILURE
    }
}
