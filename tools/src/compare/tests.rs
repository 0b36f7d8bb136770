use super::*;
use vmpi_shared::control::{CoreReport, JobReport, RankReport, RegionReport, WaitShare};

/// The file that `vmpirun --json` makes of a job like this, behind a program's output.
fn file(name: &str, wall: f64, wait: f64, sent: u64, solve: f64) -> String {
    let rank = |rank| RankReport { rank, rtime_s: 1.0, wait_s: wait, sent_bytes: sent, ..RankReport::default() };
    let report = JobReport {
        program: "./app".into(),
        ranks: 2,
        v: 2,
        elapsed_s: wall,
        cores: vec![CoreReport { running_s: 2.0, idle_s: wall - 2.0, ..CoreReport::default() }],
        rank_list: vec![rank(0), rank(1)],
        waits: vec![WaitShare { call: "receive".into(), seen_s: 2.0 * wait }],
        regions: vec![RegionReport { name: "solve".into(), ranks: 2, sum_s: solve, ..RegionReport::default() }],
        ..JobReport::default()
    };
    let document = serde_json::json!({ "exit_code": 0, "report": report });
    let path = std::env::temp_dir().join(format!("vmpi-compare-{}-{name}", std::process::id()));
    std::fs::write(&path, format!("{{ a line of the program\nanother {{\n{document:#}\n")).unwrap();
    path.display().to_string()
}

#[test]
fn the_largest_differences_come_first_and_are_told() {
    let paths = [file("a", 4.0, 1.0, 1000, 3.0), file("b", 3.0, 0.25, 1000, 2.0)];
    let [a, b] = paths.each_ref().map(|path| read(path).expect("a report"));
    let comparison = Comparison::new(&a, &b).expect("two reports");
    let first: Vec<(&str, &str)> =
        comparison.rows.iter().take(5).map(|row| (row.group.name(), row.name.as_str())).collect();
    assert_eq!(
        first,
        [
            ("ranks", "waiting in MPI"),
            ("waits", "receive"),
            ("run", "wall time"),
            ("cores", "idle"),
            ("regions", "solve")
        ]
    );
    assert!(comparison.rows.is_sorted_by_key(|row| row.unit), "times, then bytes, then counts");
    assert_eq!(
        comparison.sentences(),
        [
            "The second run took 3.000s instead of 4.000s: 25 % less.",
            "Of all ranks' time, waiting in MPI changed most: 0.500s instead of 2.000s, 1.500s less.",
            "Of what ranks wait in, receive changed most: 0.500s instead of 2.000s, 1.500s less.",
            "Of the program's own regions, `solve` changed most: 2.000s instead of 3.000s, 1.000s less."
        ]
    );
    let text = comparison.text();
    let line = text.lines().find(|line| line.starts_with("region solve")).expect("a line");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["region", "solve", "3.000s", "2.000s", "-1.000s", "0.67"]);
    let json = comparison.json();
    assert_eq!((&json["figures"][0]["difference"], &json["figures"][0]["ratio"]), (&(-1.5).into(), &0.25.into()));
    // The same run twice has nothing to tell.
    let same = Comparison::new(&a, &a).expect("two reports");
    assert_eq!(same.sentences(), ["Both took as long: 4.000s and 4.000s."]);
    assert!(same.rows.iter().all(|row| row.difference() == 0.0));
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn what_cannot_be_compared_is_refused_in_words() {
    let path = std::env::temp_dir().join(format!("vmpi-compare-odd-{}", std::process::id()));
    let name = path.display().to_string();
    for (content, why) in [
        ("", "no JSON"),
        ("text\n", "no JSON"),
        ("{\"report\": null}", "no report"),
        ("{\"a\": 1}", "neither report nor matrix"),
        ("{\"rank_list\": 3}", "invalid type"),
        ("[1, 2]", "neither"),
        ("{\"report\": {\"rank_list\": []", "no JSON"),
    ] {
        std::fs::write(&path, content).unwrap();
        let refused = read(&name).expect_err(content);
        assert!(refused.contains(&name) && refused.contains(why), "{content}: {refused}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(read(&name).expect_err("it is gone").contains("No such file"));
    let trace = format!("{name}.pftrace");
    std::fs::write(&trace, "no trace").unwrap();
    assert!(read(&trace).expect_err("no trace").contains("no trace of vmpi's"));
    std::fs::remove_file(&trace).unwrap();
    let report = file("c", 4.0, 1.0, 1000, 3.0);
    let matrix = std::env::temp_dir().join(format!("vmpi-compare-matrix-{}.json", std::process::id()));
    std::fs::write(&matrix, serde_json::to_string(&vmpi_shared::monitor::Matrix::default()).unwrap()).unwrap();
    let (a, b) = (read(&report).expect("a report"), read(&matrix.display().to_string()).expect("a matrix"));
    let refused = Comparison::new(&a, &b).expect_err("nothing in common");
    assert!(refused.contains("is a report") && refused.contains("is a matrix"), "{refused}");
    std::fs::remove_file(report).unwrap();
    std::fs::remove_file(matrix).unwrap();
}
