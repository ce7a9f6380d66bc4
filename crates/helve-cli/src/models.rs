//! `helve models`: lists the known models.

use helve::KnownModel;
use serde_json::{Value, json};

use crate::Exit;
use crate::args::GlobalArgs;
use crate::output::{self, BOLD, DIM, PLAIN};

pub(crate) async fn run(
    common: &GlobalArgs,
    filter: Option<&str>,
    all: bool,
) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let filter = filter.unwrap_or_default().to_lowercase();
    let known = toolbox.models();
    let is_meant = |model: &&KnownModel| {
        let is_shown = all || common.json || model.has_key;
        is_shown && full_name(model).to_lowercase().contains(&filter)
    };
    let models: Vec<&KnownModel> = known.iter().filter(is_meant).collect();
    let default = toolbox.config().models.model.as_ref().map(|model| model.value.clone());
    if common.json {
        let models: Vec<Value> =
            models.iter().map(|model| as_json(model, default.as_deref())).collect();
        output::print_json(&Value::from(models))?;
    } else if models.is_empty() {
        output::print(
            "No model can be used yet. Save a key with `helve auth login PROVIDER`, set the provider's variable, or \
             describe a provider in the configuration. `helve models --all` lists all known models.\n",
        )?;
    } else {
        output::print(&format!(
            "{DIM}{:<44} {:>9} {:>8} {:>16}{PLAIN}\n",
            "model", "context", "output", "$/M in / out"
        ))?;
        for model in models {
            output::print(&line(model, default.as_deref()))?;
        }
    }
    toolbox.close().await;
    Ok(Exit::Done)
}

fn full_name(model: &KnownModel) -> String {
    format!("{}/{}", model.provider, model.name)
}

fn line(model: &KnownModel, default: Option<&str>) -> String {
    let name = full_name(model);
    let price = match &model.prices {
        Some(prices) => format!("{} / {}", prices.base.input, prices.base.output),
        None => "unknown".into(),
    };
    let mark = if default == Some(name.as_str()) { " (default)" } else { "" };
    let key = if model.has_key { "" } else { " no key" };
    let name = helve::visible::escape_line(&name);
    format!(
        "{BOLD}{name:<44}{PLAIN} {:>9} {:>8} {price:>16}{DIM}{mark}{key}{PLAIN}\n",
        model.window, model.max_output
    )
}

fn as_json(model: &KnownModel, default: Option<&str>) -> Value {
    let name = full_name(model);
    let cost = model.prices.map(|prices| {
        let tier = |tier: helve::agent_loop::model::PriceTier| {
            json!({
                "input": tier.input, "output": tier.output,
                "cacheRead": tier.cache_read, "cacheWrite": tier.cache_write,
            })
        };
        let long =
            prices.long_context.map(|(above, long)| json!({"above": above, "cost": tier(long)}));
        json!({"base": tier(prices.base), "long": long})
    });
    json!({
        "name": name,
        "context": model.window,
        "output": model.max_output,
        "cost": cost,
        "images": model.reads_images,
        "documents": model.reads_documents,
        "hasKey": model.has_key,
        "default": default == Some(name.as_str()),
    })
}
