//! What people and structures should know of a scheme.
//!
//! Floor 3 (`structures`). Owns the description; touches nothing.

/// What a protection keeps alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protects {
    /// The object in a slot. Structures validate, and a reader that sleeps holds up a slot's object only.
    Object,
    /// Everything that an operation can reach. One reader that sleeps holds up all reclamation.
    Everything,
    /// The cell's present object, by counting references to it.
    Counted,
    /// Nothing has to be protected, because nothing is freed.
    Nothing,
}

/// The structures of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A cell whose object is replaced as a whole.
    Cell,
    /// Treiber's stack.
    Stack,
    /// Michael and Scott's queue.
    Queue,
    /// Harris and Michael's ordered list.
    List,
    /// A table of such lists.
    Hash,
    /// A skip list.
    Skip,
}

impl Kind {
    /// All of them.
    pub const ALL: &'static [Kind] = &[
        Kind::Cell,
        Kind::Stack,
        Kind::Queue,
        Kind::List,
        Kind::Hash,
        Kind::Skip,
    ];

    /// The name for `--ds`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Cell => "cell",
            Kind::Stack => "stack",
            Kind::Queue => "queue",
            Kind::List => "list",
            Kind::Hash => "hash",
            Kind::Skip => "skip",
        }
    }
}

/// Whether a structure can be had under a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can.
    Yes,
    /// It cannot; the reason is reported.
    No(&'static str),
}

/// What people and structures should know of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name in tables.
    pub name: &'static str,
    /// How nodes are protected.
    pub measures: &'static str,
    /// What threads keep between operations: the fairest use of a peer.
    pub holder: &'static str,
    /// What a protection keeps alive.
    pub protects: Protects,
    /// A rung to force in the process that runs it (`HP_BARRIER`).
    pub rung: Option<&'static str>,
    /// Whether `percpu` is under it, so that its rung matters.
    pub percpu: bool,
    /// Whether structures of linked nodes can be had.
    pub linked: Support,
    /// Not listed: a negative control, which must fail, or a control of the controls.
    pub hidden: bool,
}

impl About {
    /// A listed scheme under which all structures can be had.
    #[must_use]
    pub const fn new(
        name: &'static str,
        protects: Protects,
        measures: &'static str,
        holder: &'static str,
    ) -> Self {
        About {
            name,
            measures,
            holder,
            protects,
            rung: None,
            percpu: false,
            linked: Support::Yes,
            hidden: false,
        }
    }

    /// The same over `percpu`.
    #[must_use]
    pub const fn over_percpu(self) -> Self {
        About {
            percpu: true,
            ..self
        }
    }

    /// Whether a structure can be had under it.
    #[must_use]
    pub const fn supports(&self, kind: Kind) -> Support {
        match kind {
            Kind::Cell => Support::Yes,
            _ => self.linked,
        }
    }
}
