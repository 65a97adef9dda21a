//! The kinds of request that the contest knows, and what a right answer to each is worth.

/// What a visitor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/` for a visitor without a cookie.
    Front,
    /// `/recent/N` for the same.
    List,
    /// A public `/memo/N` for the same.
    Memo,
    /// A style sheet or picture, the first time.
    File,
    /// The same again, with what the server said of its version: 304.
    Unchanged,
    /// The form to sign in with.
    SignInForm,
    /// A name and its password.
    SignIn,
    /// Any of the public pages for somebody who is signed in, with the name on it.
    SignedIn,
    /// `/mypage`.
    MyPage,
    /// A public memo.
    PostPublic,
    /// A private memo.
    PostPrivate,
    /// A private memo for its author.
    OwnPrivate,
    /// A private memo for anybody else: 404.
    OthersPrivate,
    /// The end of a session.
    SignOut,
    /// A page asked for after that, with and without the old cookie.
    SignedOut,
}

/// Name and points of each kind, in the order of [`Kind`].
pub const KINDS: [(Kind, &str, u32); 15] = [
    (Kind::Front, "front page", 5),
    (Kind::List, "list page", 5),
    (Kind::Memo, "memo", 5),
    (Kind::File, "file", 1),
    (Kind::Unchanged, "file, unchanged (304)", 1),
    (Kind::SignInForm, "sign-in form", 5),
    (Kind::SignIn, "sign-in", 20),
    (Kind::SignedIn, "public page, signed in", 10),
    (Kind::MyPage, "my page", 10),
    (Kind::PostPublic, "public memo posted", 20),
    (Kind::PostPrivate, "private memo posted", 20),
    (Kind::OwnPrivate, "private memo, its author", 10),
    (Kind::OthersPrivate, "private memo, others (404)", 5),
    (Kind::SignOut, "sign-out", 10),
    (Kind::SignedOut, "page after sign-out", 5),
];

/// What a wrong answer, or none, costs.
pub const PENALTY: u64 = 50;

impl Kind {
    /// Returns the name of the kind in the report.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// Returns the points for a right answer.
    pub fn points(self) -> u64 {
        u64::from(KINDS[self as usize].2)
    }
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        for (place, (kind, _, _)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, place, "{kind:?}");
        }
    }
}
