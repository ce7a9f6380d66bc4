//! Programs found through `PATH` inside the workspace are judged as scripts of the workspace.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::stage::Stage;

const RULES: &str = r#"{"permission": {"edit": "allow", "bash": {"*": "ask", "ls *": "allow", "ls": "allow",
    "chmod *": "allow", ".venv/bin/pytest *": "allow", "danger *": "deny", ".venv/bin/evil *": "deny"}}}"#;

fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", RULES);
    for name in ["pytest", "danger", "evil"] {
        add_program(&stage, &format!("app/.venv/bin/{name}"));
    }
    stage
}

fn add_program(stage: &Stage, path: &str) {
    stage.write(path, "#!/bin/sh\ntouch ran\n");
    fs::set_permissions(stage.path(path), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Returns the decision on a command, with `{app}` and `{base}` in `PATH` replaced.
fn decision(stage: &Stage, path: &str, command: &str) -> String {
    let app = stage.path("app").display().to_string();
    let path = path.replace("{app}", &app).replace("{base}", app.trim_end_matches("/app"));
    let system = std::env::var("PATH").unwrap();
    let mut helve = stage.command();
    helve.env("PATH", path.replace("{system}", &system));
    let output = stage.finish(helve.args(["why", "bash", &format!("command={command}")]));
    output.out.lines().next().unwrap_or("").to_string()
}

#[test]
fn a_program_in_the_workspace_is_judged_by_its_path() {
    let stage = stage();
    for path in
        ["{app}/.venv/bin:{system}", ".venv/bin:{system}", "{app}/src/../.venv/bin:{system}"]
    {
        assert_eq!(decision(&stage, path, "ls src"), "allow", "{path}");
        assert_eq!(decision(&stage, path, "pytest -q"), "allow", "{path}");
        assert_eq!(decision(&stage, path, "danger x"), "deny", "{path}");
        assert_eq!(decision(&stage, path, "evil x"), "deny", "{path}");
    }
    add_program(&stage, "app/.venv/bin/ls");
    for path in
        ["{app}/.venv/bin:{system}", ".venv/bin:{system}", "/nowhere:{app}/.venv/bin:{system}"]
    {
        for command in ["ls", "ls src", "cd src && ls", "timeout 5 ls"] {
            assert_eq!(decision(&stage, path, command), "ask", "{path} {command}");
        }
    }
    // The system's program comes first.
    for path in ["{system}:{app}/.venv/bin", "{system}"] {
        assert_eq!(decision(&stage, path, "ls src"), "allow", "{path}");
    }
}

#[test]
fn links_to_folders_of_the_workspace_are_followed() {
    let stage = stage();
    add_program(&stage, "app/.venv/bin/ls");
    symlink("app/.venv/bin", stage.path("tools")).unwrap();
    assert_eq!(decision(&stage, "{base}/tools:{system}", "ls src"), "ask");
    assert_eq!(decision(&stage, ":{system}", "ls src"), "allow");
    add_program(&stage, "app/ls");
    assert_eq!(decision(&stage, ":{system}", "ls src"), "ask");
}
