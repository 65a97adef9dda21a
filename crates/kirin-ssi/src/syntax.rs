//! The syntaxes that a page may use.

/// The syntaxes that [`Template::compile`](crate::Template::compile) looks for. One page may use
/// both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syntax {
    /// SSI: `<!--# … -->`.
    pub ssi: bool,
    /// ESI: `<esi:… />`, `<!--esi … -->`.
    pub esi: bool,
}

impl Syntax {
    /// Only the server side includes of nginx.
    pub const SSI: Self = Self { ssi: true, esi: false };
    /// Only edge side includes.
    pub const ESI: Self = Self { ssi: false, esi: true };
}
