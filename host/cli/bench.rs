//! `trax bench`: how fast a database and this machine are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::database::Database;
use crate::cli::error::CliError;
use crate::cli::output::{FAINT, Output, styled};
use crate::cli::{Global, exit, input, load};
use crate::operations::bench::{Bench, Latencies, Measured, quantile};
use crate::operations::deploy;
use crate::store::StoreError;

/// Measure how fast a database and this machine are
#[derive(Debug, Args)]
pub struct BenchCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Queue runs of a train and drain them, on a database that has no runs yet
    Queue(Queue),
}

#[derive(Debug, Args)]
#[command(
    long_about = "Queue runs of a train and drain them: entries per second, runs per second, what the database \
        writes for each, how long a single run waits, and the same beside a transaction held open and with two \
        hosts. History is kept. The database must have no runs yet, and keeps those of the benchmark."
)]
struct Queue {
    /// The component
    component: PathBuf,
    /// The train; one that does nothing measures trax itself
    #[arg(long)]
    train: String,
    /// The input of every run
    #[arg(long, default_value = "{}", value_name = "JSON|@FILE|-")]
    input: String,
    /// How many runs to drain each time
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    runs: usize,
    /// How many entries to queue in one transaction
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    batch: usize,
    /// How many runs a host has in progress at once
    #[arg(long, default_value_t = 512, value_name = "COUNT")]
    workers: usize,
    /// How many single runs to time
    #[arg(long, default_value_t = 500, value_name = "COUNT")]
    samples: usize,
    /// Measure only what these words name
    #[arg(long, value_delimiter = ',', value_enum, value_name = "WORD")]
    only: Vec<Part>,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Entries and runs per second
    Drain,
    /// How long a single run waits
    Latency,
    /// Runs per second beside a transaction held open
    Held,
    /// Runs per second of two hosts
    Hosts,
}

impl BenchCommand {
    /// Carries the command out.
    ///
    /// # Errors
    /// [`CliError`] when something cannot be measured.
    pub async fn run(self, global: &Global, output: &mut Output) -> Result<u8, CliError> {
        match self.what {
            What::Queue(command) => command.run(global, output).await,
        }
    }
}

impl Queue {
    async fn run(self, global: &Global, output: &mut Output) -> Result<u8, CliError> {
        let bench = self.prepare(global).await?;
        let settings = bench.settings().await?;
        let words: Vec<_> =
            settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let data = settings.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        print(output, "settings", &words.join(", "), &Value::Object(data))?;
        // Loads the component, and makes the tables more than empty.
        bench.enqueue(self.batch).await?;
        bench.drain(self.batch, 1, false).await?;
        let mut alone = None;
        if self.measures(Part::Drain) {
            let queued = bench.enqueue(self.runs).await?;
            self.print("enqueue", &queued, None, output)?;
            let drained = bench.drain(self.runs, 1, false).await?;
            self.print("drain", &drained, None, output)?;
            alone = Some(drained);
        }
        if self.measures(Part::Latency) {
            let latencies = bench.latencies(self.samples).await?;
            print_latencies(&latencies, output)?;
        }
        for (part, name, hosts) in [(Part::Held, "held", 1), (Part::Hosts, "two hosts", 2)] {
            if self.measures(part) {
                bench.enqueue(self.runs).await?;
                let drained = bench.drain(self.runs, hosts, part == Part::Held).await?;
                self.print(name, &drained, alone.as_ref(), output)?;
            }
        }
        Ok(exit::DONE)
    }

    fn measures(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    async fn prepare(&self, global: &Global) -> Result<Bench, CliError> {
        if self.runs == 0 || self.batch == 0 || self.workers == 0 {
            return Err(CliError::Usage("counts start from 1".to_owned()));
        }
        let input = input::read(&self.input)?;
        let guests = load::guests(global)?;
        let checked = deploy::check(&self.component, &guests).await?;
        let (db, tenant) = self.database.open_to_write().await?;
        Bench::refuse_used(&db).await?;
        let deployed = db.write(async |tx| deploy::deploy(tx, tenant, &checked).await).await?;
        if !deployed.trains.contains(&self.train) {
            return Err(StoreError::NotFound { what: "train", id: self.train.clone() }.into());
        }
        db.close().await;
        Ok(Bench {
            url: self.database.url(Path::new("")),
            tenant,
            guests,
            train: self.train.clone(),
            input,
            worker_count: self.workers,
            batch: self.batch,
        })
    }

    fn print(
        &self,
        name: &str,
        measured: &Measured,
        alone: Option<&Measured>,
        output: &mut Output,
    ) -> Result<(), CliError> {
        let rate = measured.per_second();
        let of_alone = alone.map(|alone| rate / alone.per_second());
        let mut words = vec![format!("{rate:.0}/s")];
        words.extend(
            of_alone.map(|share| format!("{:.0} % of the rate of one host alone", share * 100.0)),
        );
        let each = |total: i64| per(total, measured.count);
        let log = measured.written.log_bytes.map(each);
        let dead = measured.written.dead_rows.map(each);
        let file = i64::try_from(measured.file_bytes).unwrap_or(i64::MAX);
        words.extend(log.map(|bytes| format!("{bytes:.0} bytes of log each")));
        words.extend(dead.map(|rows| format!("{rows:.2} dead rows each")));
        if log.is_none() {
            words.push(format!("{:.0} bytes written each", each(file)));
        }
        words.push(format!("{} in {:.1} s", measured.count, measured.elapsed.as_secs_f64()));
        let data = json!({
            "count": measured.count, "seconds": measured.elapsed.as_secs_f64(), "per_second": rate,
            "of_one_host_alone": of_alone, "log_bytes_each": log, "dead_rows_each": dead,
            "file_bytes_each": each(file), "workers": self.workers, "batch": self.batch,
        });
        print(output, name, &words.join(", "), &data)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a benchmark does not write so much")]
fn per(total: i64, count: usize) -> f64 {
    total as f64 / count as f64
}

fn print_latencies(latencies: &Latencies, output: &mut Output) -> Result<(), CliError> {
    let millis = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    let at = |sorted: &[Duration]| [500, 990, 1_000].map(|point| millis(quantile(sorted, point)));
    let (starts, ends) = (at(&latencies.starts), at(&latencies.ends));
    let words =
        |[p50, p99, max]: [f64; 3]| format!("p50 {p50:.2} ms, p99 {p99:.2} ms, most {max:.2} ms");
    let text = format!("to the start {}; to the end {}", words(starts), words(ends));
    let data = |[p50, p99, max]: [f64; 3]| json!({"p50_ms": p50, "p99_ms": p99, "max_ms": max});
    let count = latencies.starts.len();
    print(
        output,
        "latency",
        &text,
        &json!({"count": count, "start": data(starts), "end": data(ends)}),
    )
}

fn print(output: &mut Output, name: &str, text: &str, data: &Value) -> Result<(), CliError> {
    if output.is_json {
        output.json_line(&json!({"measured": name, "result": data}))?;
    } else {
        output.line(format!("{:<10}{text}", styled(FAINT, name)))?;
    }
    output.flush()
}
