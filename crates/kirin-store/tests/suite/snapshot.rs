//! Snapshots: what is restored, and what is refused.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use kirin_store::{
    Expires, GetRequest, Invalidation, MetaOutcome, NewItem, Now, SnapshotError, SnapshotSummary,
    SnapshotTime, Store, StoreConfig, StoreRequest, load_snapshot_file, save_snapshot_file,
};

const NOW: Now = Now::from_unix_seconds(1_700_000_000);

fn store() -> Store {
    Store::new(StoreConfig::default())
}

fn small() -> Store {
    let store = store();
    store.set(b"plain", NewItem::new(b"value").flags(7), NOW);
    store.set(b"expiring", NewItem::new(b"v").expires(Expires::after_seconds(100, NOW)), NOW);
    store.set(b"tagged", NewItem::new(b"v").tags(&[b"blog", b"front"]), NOW);
    store.set(b"", NewItem::new(b""), NOW);
    store
}

fn written(store: &Store) -> Vec<u8> {
    let mut file = Vec::new();
    store.write_snapshot(&mut file, NOW).expect("a vector takes everything");
    file
}

fn save(store: &Store, path: &Path) -> Result<SnapshotSummary, SnapshotError> {
    save_snapshot_file(store, path, NOW, || true).map(|written| written.expect("replaced"))
}

fn load(file: &[u8], now: Now) -> Result<Store, SnapshotError> {
    let store = store();
    match store.read_snapshot(&mut Cursor::new(file), now) {
        Ok(_) => Ok(store),
        Err(error) => {
            assert_eq!(store.stats().curr_items, 0, "{error}: nothing is loaded");
            Err(error)
        }
    }
}

#[test]
fn items_come_back_as_they_were() {
    let before = small();
    let after = load(&written(&before), NOW.plus_seconds(40)).expect("a whole snapshot");
    for key in [&b"plain"[..], b"expiring", b"tagged", b""] {
        let (old, new) =
            (before.peek(key, NOW).expect("there"), after.peek(key, NOW).expect("loaded"));
        assert_eq!(old.value_slice(), new.value_slice());
        assert_eq!(
            (old.flags(), old.cas(), old.expires()),
            (new.flags(), new.cas(), new.expires())
        );
        assert_eq!(old.last_access(), new.last_access());
        assert!(old.tags().eq(new.tags()));
    }
    assert!(after.invalidate_tag(b"blog", Invalidation::Hard));
    assert!(after.get(b"tagged", NOW).is_none(), "tags work as before");
    let newest = before.peek(b"", NOW).expect("there").cas();
    after.set(b"plain", NewItem::new(b"new"), NOW);
    assert!(
        after.peek(b"plain", NOW).expect("there").cas() > newest,
        "numbers go on where they stopped"
    );
}

#[test]
fn lifetimes_count_down_while_stopped() {
    let file = written(&small());
    let store = load(&file, NOW.plus_seconds(99)).expect("a whole snapshot");
    assert!(store.get(b"expiring", NOW.plus_seconds(99)).is_some());
    assert!(store.get(b"expiring", NOW.plus_seconds(100)).is_none());
    let store = load(&file, NOW.plus_seconds(100)).expect("a whole snapshot");
    assert_eq!(store.stats().curr_items, 3);
}

#[test]
fn stale_and_won_items_stay_so() {
    let before = small();
    before.invalidate_tag(b"blog", Invalidation::Soft);
    before.invalidate_prefix(b"pl", Invalidation::Hard, NOW);
    let vivify = GetRequest { vivify: Some(Expires::NEVER), ..GetRequest::default() };
    before.meta_get(b"new", &vivify, NOW);
    let chosen = StoreRequest { new_cas: Some(u64::MAX), ..StoreRequest::default() };
    before.store(b"chosen", NewItem::new(b"v"), &chosen, NOW);
    let after = load(&written(&before), NOW).expect("a whole snapshot");
    assert!(after.get(b"plain", NOW).is_none());
    assert_eq!(after.get(b"chosen", NOW).expect("there").cas(), u64::MAX);
    let hit = |key: &[u8]| match after.meta_get(key, &GetRequest::default(), NOW) {
        MetaOutcome::Hit(hit) => hit,
        other => panic!("{other:?}"),
    };
    assert!(hit(b"tagged").won && hit(b"tagged").item.is_stale());
    assert!(!hit(b"new").won && hit(b"new").item.is_won());
    after.flush_all(NOW, NOW);
    assert!(after.get(b"chosen", NOW).is_none());
    after.set(b"late", NewItem::new(b"v"), NOW);
    assert!(after.get(b"late", NOW).is_some());
}

#[test]
fn a_file_torn_anywhere_is_refused_whole() {
    let file = written(&small());
    for len in 0..file.len() {
        match load(&file[..len], NOW) {
            Err(SnapshotError::Damaged { at_byte, .. }) => {
                assert!(at_byte <= len as u64, "{len}: {at_byte}")
            }
            Err(SnapshotError::Foreign { .. }) => assert_eq!(len, 0),
            other => panic!("{len} of {} bytes: {other:?}", file.len()),
        }
    }
    let mut longer = file.clone();
    longer.push(0);
    assert!(matches!(load(&longer, NOW), Err(SnapshotError::Damaged { .. })));
}

#[test]
fn a_file_with_any_byte_changed_is_refused_whole() {
    let file = written(&small());
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 0x10;
        assert!(load(&changed, NOW).is_err(), "byte {at} of {}", file.len());
    }
}

#[test]
fn a_foreign_file_and_another_version_are_named() {
    let error = load(b"REDIS0011\xfa", NOW).expect_err("foreign").to_string();
    assert!(error.contains("not a Kirin snapshot") && error.contains("REDIS001"), "{error}");
    let mut newer = written(&small());
    newer[8] = 2;
    let error = load(&newer, NOW).expect_err("another version").to_string();
    assert!(error.contains("format 2") && error.contains("reads 1"), "{error}");
}

#[test]
fn a_file_is_replaced_whole_and_leaves_no_temporary_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("kirin.snapshot");
    let before = small();
    for i in 0..20_000u32 {
        before.set(&i.to_be_bytes(), NewItem::new(vec![i as u8; i as usize % 5000]), NOW);
    }
    let saved = save(&before, &path).expect("saved");
    assert_eq!(saved.items, before.stats().curr_items);
    let again = save(&before, &path).expect("saved over the first");
    assert_eq!(saved, again);
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
    let after = store();
    let loaded = load_snapshot_file(&after, &path, NOW).expect("loaded");
    assert_eq!((loaded.items, loaded.skipped, loaded.bytes), (saved.items, 0, saved.bytes));
    for i in (0..20_000u32).step_by(97) {
        let item = after.get(&i.to_be_bytes(), NOW).expect("loaded");
        assert_eq!(item.value_slice(), vec![i as u8; i as usize % 5000]);
    }
    let missing =
        load_snapshot_file(&after, &directory.path().join("none"), NOW).expect_err("missing");
    assert!(missing.to_string().contains("none: cannot open it"), "{missing}");
    let nowhere = save(&before, &directory.path().join("no/such")).expect_err("no directory");
    assert!(nowhere.to_string().contains("cannot create it"), "{nowhere}");
}

#[test]
fn a_smaller_store_loads_what_it_has_room_for() {
    let before = store();
    for i in 0..10_000u32 {
        before.set(&i.to_be_bytes(), NewItem::new(&[b'v'; 500]), NOW);
    }
    let file = written(&before);
    let after =
        Store::new(StoreConfig { memory_bytes: 1 << 20, shards: 2, ..StoreConfig::default() });
    let loaded = after.read_snapshot(&mut Cursor::new(file), NOW).expect("a whole snapshot");
    assert!(loaded.items > 1000 && loaded.skipped > 1000, "{loaded:?}");
    assert_eq!(loaded.items + loaded.skipped, 10_000);
    assert!(after.used_bytes() <= 1 << 20);
}

#[test]
fn a_snapshot_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("snapshot");
    save(&small(), &path).expect("a file");
    let mode = path.metadata().expect("its metadata").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

#[test]
fn times_in_a_file_are_those_of_the_wall_clock() {
    // The store's clock is 1,000 s behind the wall clock when the snapshot is written. It is 50 s
    // ahead of it when the next program loads the snapshot 10 s later.
    let before = small();
    let (wall, mut file) = (NOW.plus_seconds(1000), Vec::new());
    before.write_snapshot(&mut file, SnapshotTime { now: NOW, wall }).expect("written");
    let after = store();
    let time = SnapshotTime { now: wall.plus_seconds(60), wall: wall.plus_seconds(10) };
    after.read_snapshot(&mut Cursor::new(&file), time).expect("loaded");
    let left =
        |key: &[u8]| after.peek(key, time.now).expect("loaded").expires().seconds_left(time.now);
    assert_eq!((left(b"expiring"), left(b"plain")), (Some(90), None));
    assert_eq!(
        after.peek(b"plain", time.now).expect("there").last_access(),
        NOW.plus_seconds(1050)
    );
    let late = store();
    let time = SnapshotTime { now: NOW, wall: wall.plus_seconds(100) };
    late.read_snapshot(&mut Cursor::new(&file), time).expect("loaded");
    assert!(late.peek(b"expiring", NOW).is_none(), "its time was over by the wall clock");
}

#[test]
fn a_save_that_may_not_replace_leaves_the_existing_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("snapshot");
    save(&small(), &path).expect("a file");
    let kept = fs::read(&path).expect("a snapshot");
    assert_eq!(save_snapshot_file(&store(), &path, NOW, || false).expect("no error"), None);
    assert_eq!(fs::read(&path).expect("a snapshot"), kept);
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[test]
fn concurrent_saves_run_in_turn_and_replace_an_abandoned_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("snapshot");
    fs::write(directory.path().join("snapshot.tmp"), vec![b'x'; 1 << 20]).expect("a left-over");
    let before = small();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|_| _ = save(&before, &path).expect("saved")));
        }
    });
    let after = store();
    assert_eq!(load_snapshot_file(&after, &path, NOW).expect("whole").items, 4);
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}
