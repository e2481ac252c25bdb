//! Floor 3, bench-suite. Owns the variant `heavy-barrier`: no protection at all, one process-wide barrier as its
//! "grace period". The yardstick of `grace`: what makes readers cheap costs the updater at least this.
//! May touch `percpu`, and the scheme `none` for the reads beside.

use super::none::Plain;
use super::{About, Object, Scheme, Support};

const NOTHING: &str = "a barrier protects nothing: the reference of grace";

/// The cell of `none`, which nobody writes here.
#[derive(Debug)]
pub(crate) struct HeavyBarrier(Plain);

impl Scheme for HeavyBarrier {
    const ABOUT: About = About {
        grace: Support::Yes,
        synchronizes: true,
        percpu: true,
        ..About::new(
            "heavy-barrier",
            "one heavy barrier of percpu (readers beside do plain loads): what a grace period is compared with",
            "none: the reference of grace",
        )
        .nowhere(NOTHING)
    };

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        HeavyBarrier(Plain::new(first))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, reader: &mut ()) -> bool {
        self.0.read(reader)
    }

    fn hold(&self, reader: &mut (), inside: impl FnOnce()) -> bool {
        self.0.hold(reader, inside)
    }

    fn write(&self, object: Object) {
        self.0.write(object);
    }

    fn synchronize(&self) -> bool {
        percpu::barrier::heavy().is_ok()
    }
}
