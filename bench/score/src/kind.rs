//! The kinds of requests in the contest, and the points for a right answer to each.

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/` for a visitor without a cookie.
    Front,
    /// `/recent/N` for a visitor without a cookie.
    List,
    /// A public `/memo/N` for a visitor without a cookie.
    Memo,
    /// A style sheet or picture that the browser does not have.
    File,
    /// A file that the browser has, requested with its validators. The right answer is 304.
    Unchanged,
    /// The sign-in form.
    SignInForm,
    /// The name and the password in the sign-in form.
    SignIn,
    /// Any public page for a member who is signed in. It shows the member's name.
    SignedIn,
    /// `/mypage`.
    MyPage,
    /// A new public memo.
    PostPublic,
    /// A new private memo.
    PostPrivate,
    /// A private memo, requested by its author.
    OwnPrivate,
    /// A private memo, requested by anybody else. The right answer is 404.
    OthersPrivate,
    /// The end of a session.
    SignOut,
    /// A page requested after the end of a session, with and without the old cookie.
    SignedOut,
}

/// The name and the points of each kind, in the order of [`Kind`].
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

/// The points that a wrong or missing answer costs.
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
