//! The facts that are known about the site before it starts: its memos, its accounts and its files.
//!
//! `bench/contest.py` fills the database, reads the memos back, and writes the facts to a file for
//! the visitors.

use std::io;
use std::path::Path;

/// All facts that visitors know before the run.
pub struct Facts {
    /// The public memos, oldest first.
    pub memos: Vec<SeededMemo>,
    /// The names of the accounts. Each session takes the next one.
    pub names: Vec<String>,
    /// The password of all accounts.
    pub password: String,
    /// The files that every page needs.
    pub files: Vec<File>,
}

/// A public memo that is in the database before the run.
#[derive(serde::Deserialize)]
pub struct SeededMemo {
    /// The number of the memo, as in `/memo/N`.
    pub id: u64,
    /// Words of the title that are the same with and without HTML escaping.
    pub words: String,
    /// The name of the author.
    pub author: String,
}

/// A file of the site.
pub struct File {
    /// The path of the file.
    pub path: &'static str,
    /// The media type of the file.
    pub media_type: &'static str,
    /// The content of the file.
    pub bytes: Vec<u8>,
}

const FILES: [(&str, &str); 2] = [("/memo.css", "text/css"), ("/favicon.svg", "image/svg+xml")];

/// The number of memos on a full list page.
const MEMOS_ON_A_LIST: usize = 100;

impl Facts {
    /// Reads the facts from the file `written`, and the site's files from the directory `files`.
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
