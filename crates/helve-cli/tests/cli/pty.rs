//! A person at a real terminal: Python types keys when certain texts appear.

use std::process::Command;

use crate::stage::Stage;

/// Runs a command in a pty. The script's first argument is a list of pairs: a text to wait for, and the keys to type
/// then; the other arguments are the command. Like a terminal, the script answers queries for the position of the
/// cursor (`ESC [6n`). It prints what was shown without control sequences, then the exit code.
const DRIVER: &str = r#"
import fcntl, json, os, pty, re, select, struct, sys, termios, time
steps, argv = json.loads(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(argv[0], argv)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
shown, seen, answered = b"", 0, 0
plain = lambda data: re.sub(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[=>78])", b"", data)
end = time.time() + 60
while time.time() < end:
    ready, _, _ = select.select([fd], [], [], 0.5)
    if ready:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
        asked = shown.count(b"\x1b[6n")
        while answered < asked:
            os.write(fd, b"\x1b[1;1R")
            answered += 1
    while steps:
        text = plain(shown)
        at = text.find(steps[0][0].encode(), seen)
        if at < 0:
            break
        seen = at + len(steps[0][0].encode())
        time.sleep(0.1)
        os.write(fd, steps.pop(0)[1].encode())
else:
    os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
text = plain(shown).decode(errors="replace")
text = "\n".join(line.split("\r")[-1] if not line.endswith("\r") else line[:-1].split("\r")[-1] for line in text.split("\n"))
sys.stdout.write(text)
if steps:
    print("\nnever shown:", steps[0][0])
print("\nexit", os.waitstatus_to_exitcode(status))
"#;

/// Runs `helve` at a terminal. Each step is a text to wait for, and the keys to type then.
pub(crate) fn at_terminal(stage: &Stage, args: &[&str], steps: &[(&str, &str)]) -> String {
    let mut command = Command::new("python3");
    let steps = serde_json::to_string(steps).unwrap();
    command.args(["-c", DRIVER, &steps, env!("CARGO_BIN_EXE_helve")]).args(args);
    let mut command = stage.isolated(command);
    stage.finish(command.env("TERM", "xterm").env("NO_COLOR", "1")).out
}
