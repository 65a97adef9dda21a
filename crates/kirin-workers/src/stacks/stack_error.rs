//! Why the stack of a worker cannot be read.

/// Why the stack of a worker cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StackError {
    /// The greeting of the worker had no layout.
    #[error(
        "its adapter does not say where the stack is: it is for another language than Perl and Python, or an old one, or for an interpreter that it does not know"
    )]
    NoLayout,
    /// The kernel refuses.
    #[error("the system does not let Kirin read its memory: {0}")]
    Refused(String),
    /// The process has ended, or its memory holds something else than a stack.
    #[error("there is no stack")]
    NoStack,
    /// The stack changed while it was read, many times in a row.
    #[error("it changed while it was read")]
    Unstable,
}
