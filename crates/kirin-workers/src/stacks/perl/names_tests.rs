//! Names in a memory that tests write.

use super::*;

/// A memory that begins at this address.
const START: u64 = 0x1_0000;

/// Memory in one piece, as the heap of a process.
struct FakeMemory(Vec<u8>);

impl Memory for FakeMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let Some(at) = address.checked_sub(START) else { return false };
        let Some(found) = self.0.get(at as usize..).and_then(|rest| rest.get(..bytes.len())) else {
            return false;
        };
        bytes.copy_from_slice(found);
        true
    }
}

impl FakeMemory {
    /// Adds bytes. Returns their address.
    fn add(&mut self, bytes: &[u8]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(FILE_CHUNK_BYTES), 0);
        let address = START + self.0.len() as u64;
        self.0.extend_from_slice(bytes);
        address
    }

    /// Adds a structure of 128 bytes with these words at these offsets.
    fn structure(&mut self, words: &[(u64, u64)]) -> u64 {
        let mut bytes = [0; 128];
        for (offset, word) in words {
            bytes[*offset as usize..][..8].copy_from_slice(&word.to_ne_bytes());
        }
        self.add(&bytes)
    }

    fn name(&mut self, name: &str) -> u64 {
        let length = (name.len() as u32).to_ne_bytes();
        self.add(&[&[1, 2, 3, 4], &length[..], name.as_bytes(), b"\0"].concat())
    }

    /// Adds a value with its body.
    fn value(&mut self, kind: u32, body: &[(u64, u64)]) -> u64 {
        let body = self.structure(body);
        let head = self.structure(&[(BODY, body)]);
        self.0[(head - START + FLAGS) as usize..][..4].copy_from_slice(&kind.to_ne_bytes());
        head
    }
}

fn layout(changes: &[(&str, &str)]) -> PerlLayout {
    let mut word = "perl:1,2,8,20,10,68,9,10,48,24,30,0,38,20,9,20,28,20,0".to_owned();
    for (from, to) in changes {
        assert!(word.contains(from), "{from}");
        word = word.replace(from, to);
    }
    PerlLayout::parse(&word).unwrap()
}

/// Returns a memory with the sub Shop::cart in line 7 of a file, and the call of it.
fn shop(layout: &PerlLayout, file: &str, glob_kind: u32) -> (FakeMemory, Call) {
    let mut memory = FakeMemory(Vec::new());
    let package = memory.name("Shop");
    let stash = memory.value(12, &[(layout.stash_name, package)]);
    let sub = memory.name("cart");
    let glob =
        memory.value(glob_kind | 0x8000, &[(layout.glob_name, sub), (layout.glob_stash, stash)]);
    let cv = memory.value(13, &[(layout.cv_glob, glob), (layout.cv_stash, stash)]);
    let file = if layout.cop_file_is_glob {
        let name = memory.name(&format!("_<{file}"));
        memory.value(9, &[(layout.glob_name, name)])
    } else {
        memory.add(format!("{file}\0").as_bytes())
    };
    let cop = memory.structure(&[(layout.cop_file, file)]);
    memory.0[(cop - START + layout.cop_line) as usize] = 7;
    (memory, Call { cv, cop })
}

fn text(memory: &FakeMemory, layout: &PerlLayout, call: Call) -> String {
    let mut names = FrameNames::new(Some(Path::new("/srv/shop")));
    names.frame(memory, layout, call).text().to_string()
}

#[test]
fn a_frame_has_package_sub_file_and_line() {
    let layout = layout(&[]);
    for (file, shown) in [
        ("/srv/shop/lib/Shop.pm", "lib/Shop.pm"),
        ("/srv/shopping/Shop.pm", "/srv/shopping/Shop.pm"),
        ("(eval 12)", "(eval 12)"),
        ("a;b\nc", "a?b?c"),
        (&"x".repeat(300), &"x".repeat(300)),
    ] {
        let (memory, call) = shop(&layout, file, 9);
        assert_eq!(text(&memory, &layout, call), format!("Shop::cart ({shown}:7)"));
    }
}

#[test]
fn an_interpreter_without_threads_has_globs_of_files() {
    let layout = layout(&[(",30,0,38,", ",30,1,38,")]);
    let (memory, call) = shop(&layout, "/usr/share/perl5/Shop.pm", 9);
    assert_eq!(text(&memory, &layout, call), "Shop::cart (/usr/share/perl5/Shop.pm:7)");
}

#[test]
fn the_name_of_a_package_may_be_behind_its_buckets() {
    let layout = layout(&[(",20,0", ",8,1")]);
    let (mut memory, call) = shop(&layout, "a.psgi", 9);
    let package = memory.name("Shop::Cart");
    let buckets = memory.structure(&[(8 * 8 + layout.stash_name, package)]);
    // The package is the first value that was added, after its name and its body.
    let body = memory.word(call.cv).unwrap();
    let stash = memory.word(body + layout.cv_stash).unwrap();
    let stash_body = memory.word(stash).unwrap();
    for (address, word) in [(stash + BUCKETS, buckets), (stash_body + HIGHEST_BUCKET, 7)] {
        memory.0[(address - START) as usize..][..8].copy_from_slice(&u64::to_ne_bytes(word));
    }
    assert_eq!(text(&memory, &layout, call), "Shop::Cart::cart (a.psgi:7)");
}

#[test]
fn a_sub_may_have_its_name_itself() {
    let layout = layout(&[]);
    let (mut memory, call) = shop(&layout, "a.psgi", 9);
    let name = memory.name("lexical");
    let body = memory.word(call.cv).unwrap();
    memory.0[(body + layout.cv_glob - START) as usize..][..8].copy_from_slice(&name.to_ne_bytes());
    assert_eq!(text(&memory, &layout, call), "Shop::lexical (a.psgi:7)");
}

#[test]
fn memory_that_is_no_name_is_a_question_mark() {
    let layout = layout(&[]);
    let memory = FakeMemory(vec![0xFF; 4096]);
    for address in [0, START, START + 8, u64::MAX, START + 4090] {
        let call = Call { cv: address, cop: address };
        let text = text(&memory, &layout, call);
        assert!(text.starts_with("? (?:"), "{text}");
    }
}
