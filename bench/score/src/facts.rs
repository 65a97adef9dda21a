//! What is known of the site before it starts: its memos, who can sign in, its files.
//!
//! `bench/contest.py` seeds the database, reads the memos back from it and writes them down for the visitors.

use std::io;
use std::path::Path;

/// Everything that visitors know beforehand.
pub struct Facts {
    /// Public memos, oldest first.
    pub memos: Vec<SeededMemo>,
    /// Accounts, one for each session in turn.
    pub names: Vec<String>,
    /// The password of them all.
    pub password: String,
    /// Files that every page needs: those of style sheet, script and icon that the site has.
    pub files: Vec<File>,
}

/// A public memo of the seeded database.
#[derive(serde::Deserialize)]
pub struct SeededMemo {
    /// Its number, as in `/memo/N`.
    pub id: u64,
    /// Words of its title that no escaping changes.
    pub words: String,
    /// Who wrote it.
    pub author: String,
}

/// A file of the site.
pub struct File {
    /// Where it is asked for.
    pub path: &'static str,
    /// What it may be called.
    pub media_types: &'static [&'static str],
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// RFC 9239 has `text/javascript`; older servers' tables say `application/javascript`.
const FILES: [(&str, &[&str]); 3] = [
    ("/memo.css", &["text/css"]),
    ("/memo.js", &["text/javascript", "application/javascript"]),
    ("/favicon.svg", &["image/svg+xml"]),
];

/// Full pages of `/recent/N` that are certain to be there.
const MEMOS_ON_A_LIST: usize = 100;

impl Facts {
    /// Reads what was written down, and the site's files.
    pub fn read(written: &Path, files: &Path) -> io::Result<Self> {
        #[derive(serde::Deserialize)]
        struct Written {
            memos: Vec<SeededMemo>,
            names: Vec<String>,
            password: String,
        }
        let Written { memos, names, password } = serde_json::from_slice(&std::fs::read(written)?)?;
        if memos.len() < MEMOS_ON_A_LIST || names.is_empty() {
            return Err(io::Error::other("too few memos or accounts to make a contest of"));
        }
        let mut found = Vec::new();
        for (path, media_types) in FILES {
            match std::fs::read(files.join(path.trim_start_matches('/'))) {
                Ok(bytes) => found.push(File { path, media_types, bytes }),
                // The site need not have a script.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if found.is_empty() {
            return Err(io::Error::other(format!("{} has none of the site's files", files.display())));
        }
        Ok(Self { memos, names, password, files: found })
    }

    /// Full list pages.
    pub fn full_lists(&self) -> usize {
        self.memos.len() / MEMOS_ON_A_LIST
    }
}
