#![forbid(unsafe_code)]
//! The program `kirin`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kirin::main()
}
