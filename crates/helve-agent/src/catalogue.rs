//! The models that are known without configuration: their limits, prices and abilities.

use std::sync::LazyLock;

use crate::model::{PriceTier, Prices};

const TABLE: &str = include_str!("catalogue.txt");

/// A model of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogueModel {
    pub provider: &'static str,
    pub name: &'static str,
    /// The size of the context window in tokens.
    pub context: u64,
    /// Maximum input tokens, if lower than the context window minus the output.
    pub input: Option<u64>,
    /// Maximum number of tokens in one reply.
    pub output: u64,
    pub prices: Option<Prices>,
    pub reads_images: bool,
    pub reads_documents: bool,
    pub supports_reasoning: bool,
}

static MODELS: LazyLock<Vec<CatalogueModel>> =
    LazyLock::new(|| TABLE.lines().filter_map(parse).collect());

/// All models, in the order of the table.
pub fn all() -> &'static [CatalogueModel] {
    &MODELS
}

/// Returns a model. A name may end in the date of a version, as in `claude-sonnet-4-5-20250929`.
pub fn find(provider: &str, name: &str) -> Option<&'static CatalogueModel> {
    let of_provider = || MODELS.iter().filter(|model| model.provider == provider);
    let exact = of_provider().find(|model| model.name == name);
    exact.or_else(|| {
        of_provider().find(|model| {
            let rest = name.strip_prefix(model.name).and_then(|rest| rest.strip_prefix('-'));
            rest.is_some_and(is_version)
        })
    })
}

/// Whether a text is a date such as `20250929` or `2025-09-29`, or the word `latest`.
fn is_version(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let others = text.chars().filter(|c| !c.is_ascii_digit() && *c != '-').count();
    text == "latest" || digits == 8 && others == 0
}

fn parse(line: &'static str) -> Option<CatalogueModel> {
    let line = line.split('#').next()?;
    let mut words = line.split_whitespace();
    let (provider, name) = (words.next()?, words.next()?);
    let context = words.next()?.parse().ok()?;
    let input = words.next()?.parse().ok();
    let output = words.next()?.parse().ok()?;
    let prices = [words.next()?, words.next()?, words.next()?, words.next()?];
    let abilities = words.next().unwrap_or_default();
    let base = tier(&prices);
    let long_context = words.next().and_then(|text| {
        let (above, prices) = text.split_once(':')?;
        Some((above.parse().ok()?, tier(&prices.split(':').collect::<Vec<_>>())?))
    });
    Some(CatalogueModel {
        provider,
        name,
        context,
        input,
        output,
        prices: base.map(|base| Prices { base, long_context }),
        reads_images: abilities.contains('i'),
        reads_documents: abilities.contains('p'),
        supports_reasoning: abilities.contains('r'),
    })
}

fn tier(prices: &[&str]) -> Option<PriceTier> {
    let prices: Vec<f64> =
        prices.iter().map(|price| price.parse()).collect::<Result<_, _>>().ok()?;
    let [input, output, cache_read, cache_write] = prices[..] else { return None };
    Some(PriceTier { input, output, cache_read, cache_write })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Usage;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE.lines().map(str::trim);
        let models = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(all().len(), models);
        for model in all() {
            assert!(model.output <= model.context && model.prices.is_some(), "{model:?}");
            let again = all()
                .iter()
                .filter(|other| (other.provider, other.name) == (model.provider, model.name));
            assert_eq!(again.count(), 1, "{model:?}");
        }
    }

    #[test]
    fn versions_of_a_model_are_found() {
        let found = |provider, name| find(provider, name).map(|model| model.name);
        assert_eq!(found("anthropic", "claude-sonnet-4-5-20250929"), Some("claude-sonnet-4-5"));
        assert_eq!(found("openai", "gpt-5-2025-08-07"), Some("gpt-5"));
        assert_eq!(found("openai", "gpt-5-mini"), Some("gpt-5-mini"));
        assert_eq!(found("openai", "gpt-5-pro"), None);
        assert_eq!(found("anthropic", "gpt-5"), None);
    }

    #[test]
    fn long_requests_have_their_own_prices() {
        let prices = find("google", "gemini-2.5-pro").unwrap().prices.unwrap();
        let usage = |input| Usage {
            input,
            cache_read: 1_000,
            output: 100,
            reasoning: 100,
            ..Usage::default()
        };
        let dollars = |input| (prices.cost(&usage(input)) * 1e9).round() / 1e9;
        assert_eq!(dollars(100_000), 0.127125);
        assert_eq!(dollars(300_000), 0.75325);
    }
}
