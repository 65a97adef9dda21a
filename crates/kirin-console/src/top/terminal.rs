//! The terminal: draws the screen when a snapshot or a key comes. A thread fetches the snapshots.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use kirin_observe::live::snapshot::Snapshot;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::top::draw::draw;
use crate::top::screen::Screen;
use crate::top::source::SnapshotSource;

/// How long a snapshot may wait for the screen.
const POLL: Duration = Duration::from_millis(100);

/// Shows snapshots until a key or a signal ends it. The terminal is then as it was, also after a
/// panic. The error inside is for the user.
pub fn run(
    source: SnapshotSource,
    first: Snapshot,
    pause: Duration,
) -> io::Result<Result<(), String>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in
        [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP]
    {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let snapshots = fetch(source, pause);
    // This also makes panics restore the terminal.
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, Screen::new(first), &snapshots, &stop);
    ratatui::try_restore()?;
    ended.map(Ok)
}

/// Fetches snapshots on a thread, which ends with the receiver.
fn fetch(mut source: SnapshotSource, pause: Duration) -> Receiver<Result<Snapshot, String>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        loop {
            if !source.sets_the_pace() {
                std::thread::sleep(pause);
            }
            let snapshot = source.next();
            let is_over = snapshot.is_err() && source.sets_the_pace();
            if sender.send(snapshot).is_err() || is_over {
                return;
            }
        }
    });
    receiver
}

fn show(
    terminal: &mut DefaultTerminal,
    mut screen: Screen,
    snapshots: &Receiver<Result<Snapshot, String>>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut columns = Vec::new();
    let mut is_changed = true;
    while !stop.load(Relaxed) {
        if is_changed {
            terminal.draw(|frame| columns = draw(frame, &mut screen))?;
            is_changed = false;
        }
        if event::poll(POLL)? {
            is_changed = true;
            match event::read()? {
                Event::Key(key)
                    if key.kind != KeyEventKind::Release && !screen.press(key, &columns) =>
                {
                    return Ok(());
                }
                _ => {}
            }
        }
        while let Ok(snapshot) = snapshots.try_recv() {
            screen.update(snapshot);
            is_changed = true;
        }
    }
    Ok(())
}
