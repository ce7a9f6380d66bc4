//! Describes where a model works: the folder, the platform and the date.

use std::time::{SystemTime, UNIX_EPOCH};

use helve_agent::prompt;

use crate::toolbox::Toolbox;

/// Describes the environment of a toolbox, one fact per line.
pub(crate) async fn describe(toolbox: &Toolbox) -> String {
    let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    prompt::environment(toolbox.root(), is_git(toolbox).await, &platform, &today())
}

async fn is_git(toolbox: &Toolbox) -> bool {
    let machine = toolbox.workspace.host().machine();
    let git = machine.locate(&toolbox.root().join(".git")).await;
    git.is_ok_and(|git| git.kind.is_some())
}

/// Returns the current date in UTC, such as `2026-11-18`.
fn today() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
    let (year, month, day) = to_date(i64::try_from(days).unwrap_or(0));
    format!("{year:04}-{month:02}-{day:02}")
}

/// Converts days since 1970-01-01 to a date of the Gregorian calendar.
fn to_date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_computed() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_773, (2026, 11, 16)),
        ] {
            assert_eq!(to_date(days), date);
        }
    }
}
