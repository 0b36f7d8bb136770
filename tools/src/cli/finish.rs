//! What can be said only when the whole line has been read: MPI's `-soft`, Intel's `-gtool`, what had no effect.

use super::configfile;
use super::options::{AppOptions, EnvSetting, RunOptions};
use super::places::CpusPerRank;
use crate::failure::Failure;

/// # Errors
/// Exit code 2: options that do not fit each other.
pub fn finish(job: &mut RunOptions) -> Result<(), Failure> {
    if job.multi_prog {
        job.apps = of_ranks(&job.apps).map_err(|why| Failure::usage(format!("--multi-prog: {why}")))?;
    }
    for app in &mut job.apps {
        soften(app).map_err(|why| Failure::usage(format!("-soft: {why}")))?;
    }
    for tool in std::mem::take(&mut job.tools) {
        job.apps = with_tool(std::mem::take(&mut job.apps), &tool.words, tool.ranks.as_deref())
            .map_err(|why| Failure::usage(format!("-gtool: {why}")))?;
    }
    if job.cpus_per_rank.is_none() && sets_threads_domain(job) {
        job.cpus_per_rank = Some(CpusPerRank::Threads);
    }
    if !job.ignored.is_empty() {
        let list = job.ignored.join(", ");
        job.notes.push(format!("without effect here: {list} (`vmpirun --help` says what is)"));
    }
    Ok(())
}

/// Intel's `-genv I_MPI_PIN_DOMAIN=omp`.
fn sets_threads_domain(job: &RunOptions) -> bool {
    job.env.iter().chain(job.apps.iter().flat_map(|app| &app.env)).any(
        |setting| matches!(setting, EnvSetting::Set(name, value) if name == "I_MPI_PIN_DOMAIN" && value.starts_with("omp")),
    )
}

/// The programs that the file has which is named as the program: neighbours with the same words are one.
fn of_ranks(apps: &[AppOptions]) -> Result<Vec<AppOptions>, String> {
    let [app] = apps else { return Err("it goes with one file of programs".into()) };
    let ranks = app.ranks.ok_or("say -n: how many ranks there are must be known")?;
    let file = &app.program;
    let text = std::fs::read_to_string(file).map_err(|e| format!("cannot read {file}: {e}"))?;
    let programs = configfile::programs_of_ranks(&text, ranks).map_err(|why| format!("{file}: {why}"))?;
    let with = |words: &[Vec<String>]| AppOptions {
        ranks: Some(words.len() as u32),
        program: words[0][0].clone(),
        args: words[0][1..].to_vec(),
        ..app.clone()
    };
    Ok(programs.chunk_by(|a, b| a == b).map(with).collect())
}

/// The largest number that will do.
fn soften(app: &mut AppOptions) -> Result<(), String> {
    let Some(numbers) = app.soft.take() else { return Ok(()) };
    let most = app.ranks.unwrap_or(u32::MAX);
    let best = numbers.iter().copied().filter(|n| *n > 0 && *n <= most).max();
    app.ranks = Some(best.ok_or_else(|| format!("none of its numbers is from 1 to {most}"))?);
    Ok(())
}

/// `2,4:8:2` as 2, 4, 6, 8: numbers and ranges with a stride, as MPI_Comm_spawn's info key has them.
pub fn soft(text: &str) -> Result<Vec<u32>, String> {
    let bad = |part: &str| format!("`{part}` is not a number, LOW:HIGH or LOW:HIGH:STRIDE");
    let mut all = Vec::new();
    for part in text.split(',') {
        let numbers: Vec<i64> =
            part.split(':').map(|n| n.trim().parse().map_err(|_| bad(part))).collect::<Result<_, _>>()?;
        let (low, high, stride) = match numbers[..] {
            [one] => (one, one, 1),
            [low, high] => (low, high, 1),
            [low, high, stride] if stride != 0 => (low, high, stride),
            _ => return Err(bad(part)),
        };
        let steps = (high - low) / stride;
        if !(-1..1 << 24).contains(&steps) {
            return Err(bad(part));
        }
        all.extend((0..=steps).map(|step| low + step * stride).filter_map(|n| u32::try_from(n).ok()));
    }
    Ok(all)
}

/// The programs with `words` in front of that of some ranks: what was one program is cut where that begins and ends.
fn with_tool(apps: Vec<AppOptions>, words: &[String], ranks: Option<&[u32]>) -> Result<Vec<AppOptions>, String> {
    let [command, arguments @ ..] = words else { return Err("it names no command".into()) };
    let under = |app: &AppOptions| {
        let args = arguments.iter().chain([&app.program]).chain(&app.args).cloned().collect();
        AppOptions { program: command.clone(), args, ..app.clone() }
    };
    let Some(chosen) = ranks else { return Ok(apps.iter().map(under).collect()) };
    let mut cut = Vec::new();
    let mut first = 0;
    for app in apps {
        let count = app.ranks.ok_or("say -n: which ranks there are must be known")?;
        let mut rank = first;
        while rank < first + count {
            let inside = chosen.contains(&rank);
            let end = (rank..first + count).find(|rank| chosen.contains(rank) != inside).unwrap_or(first + count);
            let piece = AppOptions { ranks: Some(end - rank), ..app.clone() };
            cut.push(if inside { under(&piece) } else { piece });
            rank = end;
        }
        first += count;
    }
    match chosen.iter().find(|rank| **rank >= first) {
        Some(rank) => Err(format!("there is no rank {rank} of {first}")),
        None => Ok(cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_numbers() {
        assert_eq!(soft("2,4:8:2"), Ok(vec![2, 4, 6, 8]));
        assert_eq!(soft("5:3:-1,1"), Ok(vec![5, 4, 3, 1]));
        for wrong in ["", "x", "1:2:0", "1:2:3:4", "0:99999999999"] {
            assert!(soft(wrong).is_err(), "{wrong}");
        }
        let mut app = AppOptions { ranks: Some(7), soft: Some(vec![2, 4, 6, 8]), ..AppOptions::default() };
        soften(&mut app).unwrap();
        assert_eq!(app.ranks, Some(6));
        app.soft = Some(vec![9]);
        assert!(soften(&mut app).is_err());
    }

    #[test]
    fn a_tool_of_some_ranks_cuts_a_program() {
        let app = AppOptions { ranks: Some(5), program: "./a".into(), args: vec!["x".into()], ..AppOptions::default() };
        let words: Vec<String> = ["gdb", "-batch"].map(String::from).to_vec();
        let cut = with_tool(vec![app.clone()], &words, Some(&[1, 2])).unwrap();
        let shown: Vec<_> =
            cut.iter().map(|app| (app.ranks.unwrap(), app.program.as_str(), app.args.join(" "))).collect();
        assert_eq!(shown, [(1, "./a", "x".into()), (2, "gdb", "-batch ./a x".to_string()), (2, "./a", "x".into())]);
        assert!(with_tool(vec![app.clone()], &words, Some(&[7])).unwrap_err().contains("no rank 7 of 5"));
        assert_eq!(with_tool(vec![app], &words, None).unwrap().len(), 1);
    }
}
