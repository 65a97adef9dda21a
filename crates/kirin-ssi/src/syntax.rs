//! Which directives mean something in a page.

/// The syntaxes that [`Template::compile`](crate::Template::compile) looks for; both may be on in
/// one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syntax {
    /// `<!--# … -->`.
    pub ssi: bool,
    /// `<esi:… />`, `<!--esi … -->`.
    pub esi: bool,
}

impl Syntax {
    /// nginx's server side includes and nothing else.
    pub const SSI: Self = Self { ssi: true, esi: false };
    /// Edge side includes and nothing else.
    pub const ESI: Self = Self { ssi: false, esi: true };
}
