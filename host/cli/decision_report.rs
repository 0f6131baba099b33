//! `trax decisions report`: how good deciders are, for people, programs, spreadsheets and as a picture.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::calibration_plot;
use crate::cli::csv;
use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::{FAINT, NOTABLE, Output, styled};
use crate::cli::table::Table;
use crate::decide::report::{AtBar, Costs, Line};
use crate::operations::decisions::{self, Reported};

/// Say how good deciders are, by what people said their answers should have been
#[derive(Debug, Args)]
pub struct Report {
    /// Only answers to this question
    #[arg(long, value_name = "KEY")]
    question: Option<String>,
    /// Only answers in runs of this train
    #[arg(long, value_name = "TRAIN")]
    train: Option<String>,
    /// Only answers of this decider, also as a shadow
    #[arg(long, value_name = "NAME")]
    decider: Option<String>,
    /// Look at this many decisions, the newest ones
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    last: usize,
    /// What it costs to follow a wrong answer
    #[arg(long, value_name = "COST", default_value_t = 5.0, value_parser = cost)]
    wrong_costs: f64,
    /// What it costs not to follow an answer
    #[arg(long, value_name = "COST", default_value_t = 1.0, value_parser = cost)]
    unsure_costs: f64,
    /// Print comma-separated values, one line for each decider of a question
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Also draw how confidence compares with accuracy, as a picture in this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    database: Database,
}

fn cost(text: &str) -> Result<f64, String> {
    let cost = text.parse::<f64>().ok().filter(|cost| cost.is_finite() && *cost >= 0.0);
    cost.ok_or_else(|| "expected a number from 0 up".to_owned())
}

impl Report {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError::Store`], [`CliError::File`] when the picture cannot be written.
    pub async fn run(self, output: &mut Output) -> Result<u8, CliError> {
        let (db, tenant) = self.database.open_to_read().await?;
        let about = Reported {
            question: self.question.as_deref(),
            train: self.train.as_deref(),
            decider: self.decider.as_deref(),
            last: self.last,
            costs: Costs { wrong: self.wrong_costs, handed_on: self.unsure_costs },
        };
        let lines = decisions::report(&db, tenant, about).await?;
        if let Some(path) = self.svg {
            std::fs::write(&path, calibration_plot::svg(&lines))
                .map_err(|source| CliError::File { path, source })?;
        }
        if self.csv {
            output.line(csv::line(&columns(&lines)))?;
            for line in &lines {
                output.line(csv::line(&cells(line)))?;
            }
        } else if output.is_json {
            let lines: Vec<Value> = lines.iter().map(data).collect();
            output.json(&json!({ "report": lines }))?;
        } else {
            print(&lines, output)?;
        }
        Ok(exit::DONE)
    }
}

fn print(lines: &[Line], output: &mut Output) -> Result<(), CliError> {
    if lines.is_empty() {
        return output.line(styled(FAINT, "no decision"));
    }
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            output.line("")?;
        }
        print_line(line, output)?;
    }
    Ok(())
}

fn print_line(line: &Line, output: &mut Output) -> Result<(), CliError> {
    let shadow = if line.of.is_shadow { " (shadow)" } else { "" };
    output.line(format!(
        "{}, answered by {}{shadow} in {}",
        line.of.question, line.of.decider, line.of.train
    ))?;
    let mut fact = |name: &str, text: String| {
        output.line(format!("  {} {text}", styled(FAINT, format!("{name:<12}"))))
    };
    fact("answers", format!("{}, {} unfit", line.answers, line.unfit))?;
    let labelled = percent(share(line.labelled, line.answers));
    fact("labelled", format!("{} ({labelled})", line.labelled))?;
    if let Some(agreement) = line.agreement {
        fact("agreement", percent(Some(agreement)))?;
    }
    if line.judged == 0 {
        return Ok(());
    }
    fact("accuracy", percent(line.accuracy))?;
    if let Some((at, cost)) = line.best {
        fact("best bar", best(&at, cost, line.judged))?;
    }
    let mut bars = Table::new(["  bar", "followed", "accuracy"]);
    for at in &line.at_bars {
        let followed = percent(share(at.followed, line.judged));
        bars.row([format!("  {:.2}", at.bar), followed, percent(at.accuracy)]);
    }
    bars.print(output)?;
    let error = percent(line.calibration_error);
    let mut bins = Table::new(["  confidence", "answers", "on average", "accuracy"]);
    for bin in &line.calibration {
        bins.row([
            format!("  from {:.1}", bin.from),
            bin.count.to_string(),
            format!("{:.2}", bin.confidence),
            percent(Some(bin.accuracy)),
        ]);
    }
    bins.print(output)?;
    output.line(format!("  {} {error}", styled(FAINT, "confidence is off by")))
}

fn best(at: &AtBar, cost: f64, judged: usize) -> String {
    if at.followed == 0 {
        return styled(NOTABLE, format!("none: following no answer costs least, {cost}"));
    }
    let (followed, right) = (percent(share(at.followed, judged)), percent(at.accuracy));
    format!("{} follows {followed}, {right} of them right, and costs {cost}", at.bar)
}

fn share(part: usize, whole: usize) -> Option<f64> {
    let amount = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    (whole > 0).then(|| amount(part) / amount(whole))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

fn columns(lines: &[Line]) -> Vec<String> {
    let fixed = [
        "train",
        "question",
        "decider",
        "is_shadow",
        "answers",
        "unfit",
        "labelled",
        "accuracy",
        "agreement",
        "calibration_error",
        "best_bar",
        "best_bar_cost",
        "best_bar_followed",
        "best_bar_wrong",
    ];
    let bars = lines.first().into_iter().flat_map(|line| &line.at_bars);
    let of_bars = bars.flat_map(|at| {
        [format!("followed_at_{:.2}", at.bar), format!("accuracy_at_{:.2}", at.bar)]
    });
    fixed.map(str::to_owned).into_iter().chain(of_bars).collect()
}

fn cells(line: &Line) -> Vec<String> {
    let number = |number: Option<f64>| number.map_or_else(String::new, |it| format!("{it:.4}"));
    let best = line.best.as_ref();
    let counted = |count: Option<usize>| count.map_or_else(String::new, |it| it.to_string());
    let mut cells = vec![
        line.of.train.clone(),
        line.of.question.clone(),
        line.of.decider.clone(),
        line.of.is_shadow.to_string(),
        line.answers.to_string(),
        line.unfit.to_string(),
        line.labelled.to_string(),
        number(line.accuracy),
        number(line.agreement),
        number(line.calibration_error),
        number(best.map(|(at, _)| at.bar)),
        number(best.map(|(_, cost)| *cost)),
        counted(best.map(|(at, _)| at.followed)),
        counted(best.map(|(at, _)| at.wrong)),
    ];
    for at in &line.at_bars {
        cells.push(at.followed.to_string());
        cells.push(number(at.accuracy));
    }
    cells
}

fn data(line: &Line) -> Value {
    let at_bar = |at: &AtBar| {
        json!({
            "bar": at.bar, "followed": at.followed, "wrong": at.wrong, "accuracy": at.accuracy,
        })
    };
    let best = line.best.as_ref().map(|(at, cost)| {
        let mut best = at_bar(at);
        best["cost"] = json!(cost);
        best
    });
    let bins = line.calibration.iter().map(|bin| {
        json!({
            "from": bin.from, "count": bin.count, "confidence": bin.confidence,
            "accuracy": bin.accuracy,
        })
    });
    json!({
        "train": line.of.train, "question": line.of.question, "decider": line.of.decider,
        "is_shadow": line.of.is_shadow, "answers": line.answers, "unfit": line.unfit,
        "labelled": line.labelled, "judged": line.judged, "accuracy": line.accuracy,
        "agreement": line.agreement, "best_bar": best,
        "bars": line.at_bars.iter().map(at_bar).collect::<Vec<_>>(),
        "calibration": bins.collect::<Vec<_>>(), "calibration_error": line.calibration_error,
    })
}
