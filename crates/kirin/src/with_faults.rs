#![forbid(unsafe_code)]
//! The program `kirin`, built with points at which a plan of faults makes it fail (`kirin-faults`).

use std::process::ExitCode;

fn main() -> ExitCode {
    kirin::main()
}
