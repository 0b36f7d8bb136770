use super::*;

const GOOD: &str = "[hosts]\ncount = 4\ncores = 2\n[level.socket]\nlatency = \"1us\"\nbandwidth = \"1GB/s\"\n[level.switch]\nlatency = \"2us\"\nbandwidth = \"1GB/s\"\n";

fn why(text: &str) -> String {
    Machine::from_toml(text, "m.toml").expect_err("it is wrong").to_string()
}

/// What a line of the good one becomes.
fn instead(of: &str, by: &str) -> String {
    assert!(GOOD.contains(of), "{of}");
    GOOD.replacen(of, by, 1)
}

/// Line, key, what is wrong and what is allowed.
#[test]
fn what_is_wrong_is_said() {
    Machine::from_toml(GOOD, "m.toml").unwrap();
    let torus = |inside: &str| format!("{GOOD}[topology]\nkind = \"torus\"\n{inside}");
    let dragonfly = |global: u32| {
        format!("{GOOD}[topology]\nkind = \"dragonfly\"\ngroups = 9\nswitches = 4\nglobal_links = {global}\n")
    };
    let smpi = "model = \"smpi\"\n[hosts]\ncount = 2\ncores = 1\n";
    let cases = [
        (
            instead("count = 4", "cuont = 4"),
            "m.toml, line 2: unknown field `cuont`, expected one of `count`, `sockets`",
        ),
        (
            instead("latency = \"1us\"", "latency = \"1\""),
            "line 5: invalid value: string \"1\", expected a time with its unit",
        ),
        (
            instead("latency = \"1us\"", "latency = 1"),
            "line 5: invalid type: integer `1`, expected a time with its unit",
        ),
        (
            instead("bandwidth = \"1GB/s\"", "bandwidth = \"1GB\""),
            "line 6: invalid value: string \"1GB\", expected a bandwidth",
        ),
        (instead("bandwidth = \"1GB/s\"\n", ""), "line 4: missing field `bandwidth`"),
        (instead("count = 4", "count = 0"), "line 2: count is 0; allowed are 1 to 1048576"),
        (instead("count = 4\n", ""), "`count` is missing"),
        (instead("cores = 2", "cores = 2\nspeed = 0.0"), "line 4: speed is 0; allowed are 0.001 to 1000"),
        (
            instead("[hosts]", "model = \"simple\"\n[hosts]"),
            "line 1: unknown variant `simple`, expected `loggp` or `smpi`",
        ),
        (instead("[level.socket]", "[level.sokcet]"), "line 4: unknown field `sokcet`, expected one of `core`"),
        (instead("[hosts]", "[hosts"), "line 1: "),
        (
            GOOD.split("[level.switch]").next().unwrap().to_string(),
            "one of [level.switch], [level.group], [level.system] is needed",
        ),
        (
            format!("{GOOD}sizes = [{{ from = \"8KiB\" }}, {{ from = \"4KiB\" }}]"),
            "line 10: `sizes` rise: this one begins at 4096 bytes",
        ),
        (
            torus("size = [2, 3]\nup = [1]"),
            "line 13: `up` does not belong to kind = \"torus\"; allowed are `kind`, `hop`, `size`",
        ),
        (torus(""), "line 10: kind = \"torus\" needs `size`"),
        (torus("size = [0]"), "line 12: `size` is a list of 1 to 8 numbers"),
        (torus("size = [2]"), "line 2: count is 4; allowed are 1 to 2"),
        (
            torus("size = [70, 70]\n[links.host]\nbandwidth=\"1GB/s\"\n[links.switch]\nbandwidth=\"1GB/s\""),
            "has 72 links that messages compete for, and there is room for 40",
        ),
        (torus("size = [70000, 70000]"), "links; at most"),
        (dragonfly(1), "line 14: a group has 4 x 1 links to other groups, of which there are 8"),
        (
            format!("{GOOD}[links.switch]\nbandwidth = \"1GB/s\""),
            "line 10: a flat network has no links of this kind; it has host",
        ),
        (
            format!("{GOOD}[links.host]\nbandwidth = \"1GB/s\"\nlatency = \"1us\""),
            "line 12: with model = \"loggp\" latencies are those of levels",
        ),
        (smpi.to_string(), "model = \"smpi\" needs `[links.host]`"),
        (
            format!(
                "{smpi}[level.socket]\nlatency = \"1us\"\nbandwidth = \"1GB/s\"\n[links.host]\nbandwidth = \"1GB/s\""
            ),
            "model = \"smpi\" has no levels",
        ),
    ];
    for (text, says) in cases {
        let why = why(&text);
        assert!(why.contains(says), "{why}\nshould say: {says}\n{text}");
    }
}

/// Our own words for a cluster of SimGrid's give the same machine.
#[test]
fn smpi_by_toml_is_smpi_by_xml() {
    let toml = "model = \"smpi\"\n[hosts]\ncount = 4\ncores = 1\n[links.host]\nbandwidth = \"1GB/s\"\nlatency = \"10us\"\n\
        [links.backbone]\nbandwidth = \"2GB/s\"\nlatency = \"5us\"\n";
    let xml = "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"1GBps\" lat=\"10us\" \
        bb_bw=\"2GBps\" bb_lat=\"5us\"/></platform>";
    let images = [Machine::from_text(toml, "a").unwrap(), Machine::from_text(xml, "b").unwrap()].map(|mut machine| {
        machine.poll = 0;
        machine.image()
    });
    assert_eq!(images[0], images[1]);
}

#[test]
fn a_level_that_is_not_given_costs_as_its_neighbour() {
    let machine = Machine::from_toml(GOOD, "m.toml").unwrap();
    let latencies: Vec<u64> = machine.levels.iter().map(|level| level.pieces[0].latency / 1_000_000).collect();
    assert_eq!(latencies, [1, 1, 1, 2, 2, 2]);
    assert_eq!((machine.poll, machine.name.as_str()), (POLL, "m.toml"));
}
