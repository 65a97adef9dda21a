//! A program in a terminal of its own, whose screen is read back.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::wait_for;

/// A terminal, and the program in it. The program is killed when this is dropped.
pub struct Terminal {
    child: Child,
    keyboard: File,
    /// The side of the program, which keeps the terminal open when the program has ended.
    line: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    /// Starts a command in a terminal of this size.
    ///
    /// # Panics
    /// Panics if there is no terminal or no program.
    pub fn start(command: &Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("grantpt");
        unlockpt(&master).expect("unlockpt");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let line =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the line");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).expect("its size");
        // `setsid` of util-linux makes the terminal that of the program, which is not safe Rust.
        let mut program = Command::new("setsid");
        program.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => program.env(name, value),
                None => program.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            program.current_dir(directory);
        }
        let end = || Stdio::from(line.try_clone().expect("a copy"));
        let child = program.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = child.spawn().expect("setsid");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().expect("a copy");
        let parser = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                parser.lock().expect("screen").process(&buffer[..count]);
            }
        });
        Self { child, keyboard, line, screen }
    }

    /// Returns the text on the screen.
    ///
    /// # Panics
    /// Panics if the thread that reads has.
    pub fn text(&self) -> String {
        self.screen.lock().expect("screen").screen().contents()
    }

    /// Returns the lines on the screen.
    pub fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    /// Waits until the screen has a text.
    ///
    /// # Panics
    /// Panics if it does not get it. The message has the screen.
    pub fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until a condition on the text holds.
    ///
    /// # Panics
    /// Panics as [`Terminal::wait_for`] does.
    pub fn wait_until(&self, what: &str, condition: impl Fn(&str) -> bool) {
        let start = std::time::Instant::now();
        while !condition(&self.text()) {
            assert!(start.elapsed() < crate::wait_limit(), "no {what} on\n{}", self.text());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Presses keys.
    ///
    /// # Panics
    /// Panics if the terminal is gone.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("keys");
    }

    /// Sends the program a signal.
    ///
    /// # Panics
    /// Panics if it has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("kill");
    }

    /// Waits for the end of the program, and checks that it leaves the terminal as it was.
    ///
    /// # Panics
    /// Panics if it does not.
    pub fn wait(&mut self) -> ExitStatus {
        let status = wait_for("the end of the program", || self.child.try_wait().expect("wait"));
        assert_eq!(status.signal(), None, "{}", self.text());
        let restored = || {
            let screen = self.screen.lock().expect("screen");
            (!screen.screen().alternate_screen() && !screen.screen().hide_cursor()).then_some(())
        };
        wait_for("the usual screen with a cursor", restored);
        let modes = tcgetattr(&self.line).expect("modes").local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "{modes:?}");
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
