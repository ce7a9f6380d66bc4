//! `helve skills`: lists the skills, and the problems of those that cannot be read.

use helve::config::{ConfigProblem, SKILL_FILE, Skill};
use helve::visible;
use serde_json::{Value, json};

use crate::Exit;
use crate::args::GlobalArgs;
use crate::output::{self, BOLD, DIM, PLAIN};

pub(crate) async fn run(common: &GlobalArgs) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let config = toolbox.config();
    let problems: Vec<&ConfigProblem> = config
        .problems
        .iter()
        .filter(|problem| problem.file.file_name().is_some_and(|name| name == SKILL_FILE))
        .collect();
    if common.json {
        let skills: Vec<Value> = config.skills.iter().map(as_json).collect();
        let problems: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
        output::print_json(&json!({"skills": skills, "problems": problems}))?;
    } else {
        problems.iter().for_each(|problem| output::print_problem(problem));
        for skill in &config.skills {
            output::print(&lines(skill))?;
        }
        if config.skills.is_empty() {
            output::print(
                "There are no skills. A skill is a folder with a SKILL.md in .helve/skills, .claude/skills, .agents/skills \
                 or .opencode/skills, of the project or of your home folder.\n",
            )?;
        }
        let waiting = config.explain().filter(|line| line.key.starts_with("skill.")).count();
        if waiting > 0 {
            let skills = if waiting == 1 { "skill" } else { "skills" };
            output::note(&format!(
                "{waiting} {skills} of this project can be used once you trust it: helve trust"
            ));
        }
    }
    toolbox.close().await;
    Ok(Exit::Done)
}

fn lines(skill: &Skill) -> String {
    let description: String = visible::escape_line(&skill.description).chars().take(200).collect();
    let name = visible::escape_line(&skill.name);
    let for_people = if skill.is_for_people_only { " (for people only)" } else { "" };
    let path = visible::escape_line(&skill.path.display().to_string()).into_owned();
    format!("{BOLD}{name}{PLAIN}{for_people}\n  {description}\n  {DIM}{path}{PLAIN}\n")
}

fn as_json(skill: &Skill) -> Value {
    json!({
        "name": skill.name,
        "description": skill.description,
        "path": skill.path,
        "forPeopleOnly": skill.is_for_people_only,
    })
}
