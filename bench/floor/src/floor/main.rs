//! `kirin-floor`: a TCP server that does the least possible work. All other servers are measured
//! against it.
//!
//! It answers every read with the same bytes. While it serves, it parses nothing, looks up nothing
//! and allocates nothing. Its cost is therefore the kernel's part of a request, and no server with
//! the same kernel interface can be cheaper. `bench/compare.py` starts it. Its three modes compare
//! an event loop, threads, and an event loop on each core.
#![forbid(unsafe_code)]

mod epoll;
mod listener;
mod processes;
mod response;
mod threads;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// Answers every read on every connection with the same bytes, and does nothing else.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// How connections are served.
    #[arg(long, value_enum, default_value = "epoll")]
    mode: Mode,
    /// TCP port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Size of the response's body in bytes.
    #[arg(long, default_value_t = 1024, value_name = "BYTES")]
    body: usize,
    /// Share the port with other processes (`SO_REUSEPORT`).
    #[arg(long)]
    reuse_port: bool,
    /// End when the process that started this one ends.
    #[arg(long)]
    end_with_parent: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// One event loop in one thread.
    Epoll,
    /// One thread for each connection, with blocking calls.
    Threads,
    /// One process with an event loop for each core that this one may run on. They share the port.
    Processes,
}

fn main() -> ExitCode {
    match serve(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kirin-floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &Arguments) -> std::io::Result<()> {
    if arguments.end_with_parent {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    }
    if let Mode::Processes = arguments.mode {
        return processes::serve(arguments.port, arguments.body);
    }
    let listener = listener::listen(arguments.port, arguments.reuse_port)?;
    let response = response::with_body_of(arguments.body);
    println!("listening on {}", listener.local_addr()?);
    match arguments.mode {
        Mode::Threads => threads::serve(&listener, response),
        Mode::Epoll | Mode::Processes => epoll::serve(&listener, &response),
    }
}
