//! The steps of a request that took time: a queue, a worker, an upstream, an included part.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::request_notes::CacheResult;

/// The most steps of one request that are kept. Retries and parts of a page make more than three.
const MAX_STEPS: usize = 64;

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The request waited for a free worker or server, or for a CGI program to end.
    Queue,
    /// A worker of an application, or a CGI program, had the request.
    Worker,
    /// A server of an upstream had the request.
    Upstream,
    /// The cache waited for a response that another request has asked for.
    Fetch,
    /// A part of the page was asked for.
    Include,
}

impl StepKind {
    /// Returns the word in logs and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Worker => "worker",
            Self::Upstream => "upstream",
            Self::Fetch => "fetch",
            Self::Include => "include",
        }
    }
}

/// The server or worker that has a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepPeer {
    /// A worker, by its process id.
    Process(u32),
    /// A server of an upstream, by its address.
    Server(Arc<str>),
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its kind.
    pub kind: StepKind,
    /// The application, the upstream, or the target of the included part.
    pub name: Arc<str>,
    /// The server or worker that has the request.
    pub peer: Option<StepPeer>,
    /// When it began.
    pub started: Instant,
    /// When it ended. `None` while it lasts.
    pub ended: Option<Instant>,
    /// The steps of an included part.
    pub parts: Option<Rc<RequestSteps>>,
}

/// The steps of one request, in the order in which they began.
#[derive(Debug, Default)]
pub struct RequestSteps {
    pub(crate) cache: Cell<Option<CacheResult>>,
    steps: RefCell<Vec<Step>>,
    /// The visitor whom the route has authenticated, if its response needs the name.
    user: RefCell<Option<Rc<str>>>,
    /// What is held until the response has ended.
    held: RefCell<Vec<Box<dyn Any>>>,
}

impl RequestSteps {
    /// Notes the visitor whom the route has authenticated.
    pub fn set_user(&self, name: &str) {
        *self.user.borrow_mut() = Some(name.into());
    }

    /// Returns the visitor, if one is noted.
    pub fn user(&self) -> Option<Rc<str>> {
        self.user.borrow().clone()
    }

    /// Holds `permit` until the response has ended and nothing works on the request any more.
    pub fn hold(&self, permit: Box<dyn Any>) {
        self.held.borrow_mut().push(permit);
    }

    /// Adds a step that begins now. It ends when the returned value is dropped.
    pub fn begin(self: &Rc<Self>, kind: StepKind, name: &Arc<str>) -> OpenStep {
        self.begin_at(kind, name, Instant::now())
    }

    /// Adds a step that has begun at `started`. It ends when the returned value is dropped.
    pub fn begin_at(
        self: &Rc<Self>,
        kind: StepKind,
        name: &Arc<str>,
        started: Instant,
    ) -> OpenStep {
        let number = self.push(kind, name, None, started, None);
        OpenStep { steps: Rc::clone(self), number }
    }

    /// Adds a step that has ended.
    pub fn add(
        &self,
        kind: StepKind,
        name: &Arc<str>,
        peer: Option<StepPeer>,
        started: Instant,
        ended: Instant,
    ) {
        self.push(kind, name, peer, started, Some(ended));
    }

    /// Adds a step if there is room. Returns its number.
    fn push(
        &self,
        kind: StepKind,
        name: &Arc<str>,
        peer: Option<StepPeer>,
        started: Instant,
        ended: Option<Instant>,
    ) -> usize {
        let mut steps = self.steps.borrow_mut();
        let number = steps.len();
        if number < MAX_STEPS {
            let name = Arc::clone(name);
            steps.push(Step { kind, name, peer, started, ended, parts: None });
        }
        number
    }

    /// Adds the steps of a part that began at `started`. It ends with the last of them.
    pub fn add_part(&self, name: Arc<str>, started: Instant, parts: Rc<RequestSteps>) {
        let mut steps = self.steps.borrow_mut();
        if steps.len() < MAX_STEPS {
            let (kind, parts) = (StepKind::Include, Some(parts));
            steps.push(Step { kind, name, peer: None, started, ended: None, parts });
        }
    }

    /// Calls `visit` with all steps.
    pub fn with<R>(&self, visit: impl FnOnce(&[Step]) -> R) -> R {
        visit(&self.steps.borrow())
    }

    /// Returns the time that all steps of a kind took together. `None` if there are none.
    pub fn total(&self, kind: StepKind, now: Instant) -> Option<Duration> {
        let steps = self.steps.borrow();
        let mut times = steps.iter().filter(|step| step.kind == kind).map(|step| step.took(now));
        let first = times.next()?;
        Some(times.fold(first, |sum, time| sum + time))
    }

    /// Returns what the cache had for the request.
    pub fn cache_result(&self) -> Option<CacheResult> {
        self.cache.get()
    }

    /// Returns the last step of a kind.
    pub fn last(&self, kind: StepKind) -> Option<Step> {
        self.steps.borrow().iter().rfind(|step| step.kind == kind).cloned()
    }
}

impl Step {
    /// Returns how long the step took, or has lasted so far.
    pub fn took(&self, now: Instant) -> Duration {
        self.end(now).saturating_duration_since(self.started)
    }

    /// Returns when the step ended: for an included part, with the last of its own steps.
    pub fn end(&self, now: Instant) -> Instant {
        match &self.parts {
            Some(parts) => parts.with(|steps| steps.iter().map(|step| step.end(now)).max()),
            None => self.ended,
        }
        .unwrap_or(now)
    }
}

/// A step that lasts until this is dropped.
#[derive(Debug)]
pub struct OpenStep {
    steps: Rc<RequestSteps>,
    number: usize,
}

impl OpenStep {
    /// Notes the server or worker that has the request.
    pub fn set_peer(&self, peer: StepPeer) {
        if let Some(step) = self.steps.steps.borrow_mut().get_mut(self.number) {
            step.peer = Some(peer);
        }
    }
}

impl Drop for OpenStep {
    fn drop(&mut self) {
        if let Some(step) = self.steps.steps.borrow_mut().get_mut(self.number) {
            step.ended = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_lasts_until_it_is_dropped() {
        let steps = Rc::<RequestSteps>::default();
        let open = steps.begin(StepKind::Worker, &"web".into());
        assert!(steps.with(|steps| steps[0].ended.is_none()));
        open.set_peer(StepPeer::Process(17));
        drop(open);
        let step = steps.last(StepKind::Worker).unwrap();
        assert!(step.ended.is_some());
        assert_eq!((&*step.name, step.peer), ("web", Some(StepPeer::Process(17))));
        assert_eq!(steps.total(StepKind::Queue, Instant::now()), None);
    }

    #[test]
    fn a_part_ends_with_its_last_step() {
        let (page, part) = (RequestSteps::default(), Rc::<RequestSteps>::default());
        let started = Instant::now();
        drop(part.begin(StepKind::Worker, &"web".into()));
        let ended = part.last(StepKind::Worker).unwrap().ended.unwrap();
        page.add_part("/part".into(), started, part);
        let step = page.last(StepKind::Include).unwrap();
        assert_eq!(step.end(ended + Duration::from_secs(9)), ended);
    }

    #[test]
    fn the_number_of_steps_is_bounded() {
        let steps = Rc::<RequestSteps>::default();
        for _ in 0..2 * MAX_STEPS {
            drop(steps.begin(StepKind::Queue, &"web".into()));
        }
        assert_eq!(steps.with(<[Step]>::len), MAX_STEPS);
    }
}
