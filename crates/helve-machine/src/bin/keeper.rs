//! The keeper alone, for those who use the library without the program `helve`.

fn main() -> std::process::ExitCode {
    helve_machine::keeper::main()
}
