//! The position of a request below the request of a client, and the limits on subrequests.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use kirin_ssi::Scope;

use super::given_names::GivenNames;

/// The most subrequests inside each other. It ends a page that includes itself.
pub const MAX_DEPTH: u8 = 8;

/// The most subrequests that one request of a client causes, at all depths together.
const MAX_REQUESTS: usize = 1024;

/// The position of a request below the request of a client.
#[derive(Clone, Default)]
pub struct Lineage {
    /// The depth: 0 for a client's own request, 1 for its subrequests.
    depth: u8,
    /// The variables of the page that includes the answer.
    variables: Option<Rc<SharedVariables>>,
    /// The fields of the subrequest that a rule has set.
    given: GivenNames,
    /// The counts for all subrequests of one client's request. The first subrequest creates them.
    family: OnceCell<Rc<SubrequestCount>>,
}

/// The subrequests of one client's request, at all depths together.
#[derive(Default)]
struct SubrequestCount {
    started: Cell<usize>,
    /// Whether one has been refused.
    is_cut: Cell<bool>,
}

/// The variables that a page and a part of it share. As in nginx and Apache, a part gets the
/// variables of the page, and the page gets those of a part that it has waited for.
#[derive(Default)]
pub struct SharedVariables {
    /// The variables of the page when it asked for the part.
    pub given: Scope,
    /// The variables of the part at its end. None if the part is not a page with directives.
    pub left: RefCell<Option<Scope>>,
}

/// The reason for which there is no subrequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubrequestRefusal {
    /// Its target is empty or too long.
    #[error("is no target of a request")]
    Target,
    /// The requests are too deep or too many.
    #[error("requests go in a circle, too deep or are too many")]
    Cut {
        /// Whether another one below the same request was refused before. A page in a circle makes
        /// thousands, and the log gets one line.
        again: bool,
    },
}

impl Lineage {
    /// Returns the variables of the page that includes the answer.
    pub fn variables(&self) -> Option<&Rc<SharedVariables>> {
        self.variables.as_ref()
    }

    /// Returns whether the request is not a client's own.
    pub fn is_subrequest(&self) -> bool {
        self.depth > 0
    }

    /// Counts a subrequest of this request and returns its lineage. `variables` are those of the
    /// page that includes its answer.
    pub fn child(
        &self,
        variables: Option<&Rc<SharedVariables>>,
    ) -> Result<Self, SubrequestRefusal> {
        let family = self.family.get_or_init(Rc::default);
        let started = family.started.get();
        if self.depth >= MAX_DEPTH || started >= MAX_REQUESTS {
            return Err(SubrequestRefusal::Cut { again: family.is_cut.replace(true) });
        }
        family.started.set(started + 1);
        let (variables, family) = (variables.cloned(), Rc::clone(family).into());
        Ok(Self { depth: self.depth + 1, variables, given: GivenNames::default(), family })
    }

    /// Adds the names of the fields of the subrequest that a rule has set.
    pub fn with_given(self, given: GivenNames) -> Self {
        Self { given, ..self }
    }

    /// Returns the names of the fields of the request that a rule has set.
    pub fn given(&self) -> &GivenNames {
        &self.given
    }

    /// Returns a copy that counts requests together with this one.
    pub fn keep(&self) -> Self {
        self.family.get_or_init(Rc::default);
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_and_the_number_of_subrequests_are_limited() {
        let mut lineage = Lineage::default();
        assert!(!lineage.is_subrequest());
        for _ in 0..MAX_DEPTH {
            lineage = lineage.child(None).unwrap();
            assert!(lineage.is_subrequest());
        }
        assert_eq!(lineage.child(None).err(), Some(SubrequestRefusal::Cut { again: false }));
        assert_eq!(lineage.child(None).err(), Some(SubrequestRefusal::Cut { again: true }));
        let lineage = Lineage::default();
        for _ in 0..MAX_REQUESTS / 2 {
            lineage.child(None).unwrap().child(None).unwrap();
        }
        assert_eq!(lineage.child(None).err(), Some(SubrequestRefusal::Cut { again: false }));
    }
}
