//! Running other programs, and saying which one failed.

use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

/// Runs a program that speaks to the terminal itself. None gets an input: nothing may wait for one.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{shown}`; is it installed?"))?;
    ensure!(status.success(), "`{shown}` failed: {status}");
    Ok(())
}

/// Runs a program and gives what it printed. Its errors become part of ours.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{shown}`; is it installed?"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed other than UTF-8"))
}

/// Whether a program can be started and ends well. What it prints is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs a program for at most this long, and kills it then.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    const LOOK: Duration = Duration::from_millis(50);
    let shown = show(command);
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`; is it installed?"))?;

    let mut waited = Duration::ZERO;
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if waited >= limit {
            // It may have ended in between; then there is nothing to kill, which is as good.
            child.kill().ok();
            child.wait()?;
            bail!("`{shown}` was not ready after {} s and was stopped", limit.as_secs_f32());
        }
        thread::sleep(LOOK);
        waited += LOOK;
    };
    ensure!(status.success(), "`{shown}` failed: {status}");
    Ok(())
}

/// Runs a program that goes on until it is interrupted, and interrupts it after this long. It then has to end well.
pub(crate) fn run_until(command: &mut Command, limit: Duration) -> Result<()> {
    let shown = show(command);
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`; is it installed?"))?;
    thread::sleep(limit);
    run(Command::new("kill").args(["-INT", &child.id().to_string()]))?;
    let status = child.wait()?;
    ensure!(status.success(), "`{shown}` failed after it was interrupted: {status}");
    Ok(())
}

/// The command as one would type it, with the program's name alone.
fn show(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words: Vec<_> = std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command() {
        let error = run(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap_err();

        assert_eq!(error.to_string(), "`sh -c exit 3` failed: exit status: 3");
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = run(&mut Command::new("no-such-program")).unwrap_err();

        assert_eq!(error.to_string(), "cannot start `no-such-program`; is it installed?");
    }

    #[test]
    fn what_a_failing_program_complains_about_is_kept() {
        let error = read(Command::new("sh").args(["-c", "echo out of paper >&2; exit 1"]));

        assert!(error.unwrap_err().to_string().ends_with("failed: out of paper"));
    }

    #[test]
    fn a_program_that_hangs_is_stopped() {
        let limit = Duration::from_millis(100);

        let error = run_within(Command::new("tail").args(["-f", "/dev/null"]), limit).unwrap_err();

        assert_eq!(
            error.to_string(),
            "`tail -f /dev/null` was not ready after 0.1 s and was stopped"
        );
    }

    #[test]
    fn a_program_that_is_interrupted_has_to_end_well() {
        let limit = Duration::from_millis(300);
        let script = |end: &str| format!("trap '{end}' INT; sleep 5 >/dev/null 2>&1 & wait");
        let run = |end: &str| run_until(Command::new("sh").args(["-c", &script(end)]), limit);

        assert!(run("exit 0").is_ok());
        let error = run("exit 3").unwrap_err().to_string();
        assert!(error.ends_with("failed after it was interrupted: exit status: 3"), "{error}");
    }

    #[test]
    fn a_program_that_ends_in_time_is_judged_by_its_status() {
        let limit = Duration::from_mins(1);

        assert!(run_within(&mut Command::new("true"), limit).is_ok());
        assert!(run_within(&mut Command::new("false"), limit).is_err());
    }
}
