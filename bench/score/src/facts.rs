//! What is known of the site before it starts: its memos, who can sign in, its files.
//!
//! `bench/contest.py` seeds the database, reads the memos back from it and writes them down for the
//! visitors.

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
    /// Files that every page needs.
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
    /// What it is called.
    pub media_type: &'static str,
    /// What it holds.
    pub bytes: Vec<u8>,
}

const FILES: [(&str, &str); 2] = [("/memo.css", "text/css"), ("/favicon.svg", "image/svg+xml")];

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
        let files = FILES
            .into_iter()
            .map(|(path, media_type)| {
                let bytes = std::fs::read(files.join(path.trim_start_matches('/')))?;
                Ok(File { path, media_type, bytes })
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { memos, names, password, files })
    }

    /// Returns the number of full list pages.
    pub fn full_lists(&self) -> usize {
        self.memos.len() / MEMOS_ON_A_LIST
    }
}
