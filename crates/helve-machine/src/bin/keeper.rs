//! The keeper as a separate executable, for users of the library who do not have the program `helve`. The keeper is the
//! process that makes sure that no program is left behind.

fn main() -> std::process::ExitCode {
    helve_machine::keeper::main()
}
