//! What is read of a platform, and what is said of the rest.

use crate::machine::{HostRun, Machine, Policy, Topology};

fn platform(inside: &str) -> Result<Machine, String> {
    let text = format!(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n{inside}\n</platform>"
    );
    Machine::from_text(&text, "p.xml").map_err(|why| why.to_string())
}

fn zone(inside: &str) -> Result<Machine, String> {
    platform(&format!("<zone id=\"z\" routing=\"Full\">\n{inside}\n</zone>"))
}

const CLUSTER: &str = "<cluster id=\"c\" prefix=\"n-\" suffix=\".me\" radical=\"0-3,7\" speed=\"1Gf\" core=\"2\" bw=\"1GBps\" lat=\"10us\"/>";
const TWO: &str = "<host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"2Gf\" core=\"4\"/><host id=\"c\" speed=\"2Gf\" core=\"4\"/>\n\
    <link id=\"l\" bandwidth=\"125MBps\" latency=\"50us\"/>\n<link id=\"s\" bandwidth=\"1Gbps\" sharing_policy=\"SPLITDUPLEX\"/>";

#[test]
fn a_cluster_is_read() {
    for inside in [CLUSTER.to_string(), format!("<zone id=\"world\" routing=\"Full\">{CLUSTER}</zone>")] {
        let machine = platform(&inside).unwrap();
        assert_eq!((machine.host_count(), machine.place_count(), machine.link_count()), (5, 10, 10));
        assert_eq!(machine.host_names[4], "n-7.me");
        assert_eq!(machine.topology, Topology::Flat { half_duplex: false, backbone: false, loopback: false });
    }
    let fat = platform(
        &CLUSTER.replace("lat=", "sharing_policy=\"FATPIPE\" bb_bw=\"2GBps\" bb_sharing_policy=\"FATPIPE\" lat="),
    )
    .unwrap();
    assert_eq!((fat.classes[0].count, fat.classes[0].policy, fat.classes[1].policy), (5, Policy::Shared, Policy::Free));
    assert!(fat.notes[0].contains("FATPIPE"));
}

#[test]
fn a_zone_is_read() {
    let routes = "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/><link_ctn id=\"s\" direction=\"UP\"/></route>\
        <route src=\"a\" dst=\"c\"><link_ctn id=\"l\"/></route>\
        <route src=\"b\" dst=\"c\" symmetrical=\"NO\"><link_ctn id=\"s\" direction=\"UP\"/></route>\
        <route src=\"c\" dst=\"b\" symmetrical=\"NO\"><link_ctn id=\"l\"/></route>";
    let machine = zone(&format!("{TWO}{routes}")).unwrap();
    let run = |count, cores, speed_millionths| HostRun { count, sockets: 1, cores, speed_millionths };
    assert_eq!(machine.hosts, [run(1, 1, 1_000_000), run(2, 4, 2_000_000)]);
    let Topology::Routes(routes) = &machine.topology else { panic!() };
    let links: Vec<_> = routes.iter().map(|route| (route.from, route.to, route.links.clone())).collect();
    let back =
        [(0, 1, vec![0, 1]), (0, 2, vec![0]), (1, 0, vec![2, 0]), (1, 2, vec![1]), (2, 0, vec![0]), (2, 1, vec![0])];
    assert_eq!(links, back);
    assert_eq!(
        (machine.classes.len(), machine.classes[1].bandwidth, machine.classes[3].policy),
        (4, 125_000_000, Policy::Free)
    );
}

/// Line, element, what is wrong and what is allowed.
#[test]
fn what_is_wrong_is_said() {
    let cluster = |from: &str, to: &str| platform(&CLUSTER.replace(from, to));
    let cases = [
        (cluster("bw=\"1GBps\"", "bw=\"1GB\""), "p.xml, line 4: <cluster>: bw=\"1GB\"; allowed is one bandwidth"),
        (cluster("bw=\"1GBps\" ", ""), "line 4: <cluster>: bw is missing"),
        (cluster("0-3,7", "3-0"), "radical=\"3-0\"; allowed are numbers and ranges"),
        (cluster("lat=", "topology=\"TORUS\" lat="), "topology=\"TORUS\" is not read; allowed are FLAT"),
        (cluster("lat=", "colour=\"red\" lat="), "colour=\"red\" is not read; allowed are id, prefix"),
        (cluster("lat=", "bb_lat=\"1us\" lat="), "bb_lat or bb_sharing_policy without bb_bw"),
        (cluster("1Gf", "1Gf,2Gf"), "speed=\"1Gf,2Gf\"; allowed is one speed"),
        (cluster("core=\"2\"", "core=\"0\""), "core=\"0\"; allowed is a number from 1 to 4096"),
        (platform(""), "<platform>: there is no <cluster> and no <zone>"),
        (platform(&format!("{CLUSTER}\n{CLUSTER}")), "line 5: <cluster>: a second cluster or zone"),
        (platform("\n<config><prop id=\"a\" value=\"b\"/></config>"), "line 5: <config>: settings of SimGrid"),
        (platform("<zone id=\"z\" routing=\"Floyd\"/>"), "routing=\"Floyd\" is not read; allowed are Full"),
        (zone("<router id=\"r\"/>"), "line 5: <router>: not read in a zone; allowed are <host>"),
        (
            zone(&format!("{TWO}\n<route src=\"a\" dst=\"x\"/>")),
            "line 8: <route>: dst=\"x\": there is no such host above",
        ),
        (
            zone(&format!("{TWO}\n<route src=\"a\" dst=\"b\"><link_ctn id=\"m\"/></route>")),
            "<link_ctn>: id=\"m\": there is no such link",
        ),
        (
            zone(&format!("{TWO}\n<route src=\"a\" dst=\"b\"><link_ctn id=\"s\"/></route>")),
            "link s is SPLITDUPLEX: direction=",
        ),
        (
            zone(&format!("{TWO}\n<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>")),
            "line 4: <zone>: there is no <route> from a to c",
        ),
        (zone(&format!("{TWO}<link id=\"l\" bandwidth=\"1MBps\"/>")), "a second link l"),
        (
            Machine::from_text("<platform version=\"3\"/>", "p.xml").map_err(|why| why.to_string()),
            "version is 3; read are 4 and 4.1",
        ),
        (
            Machine::from_text("<platform>\n<a></b>", "p.xml").map_err(|why| why.to_string()),
            "p.xml, line 2: this is no XML",
        ),
        (
            Machine::from_text("<grid/>", "p.xml").map_err(|why| why.to_string()),
            "<grid>: a description of SimGrid begins with <platform>",
        ),
    ];
    for (read, says) in cases {
        let why = read.expect_err(says);
        assert!(why.contains(says), "{why}\nshould say: {says}");
    }
}

/// A file that grows by itself when it is read is refused, too.
#[test]
fn entities_do_not_explode() {
    let entities: String = (1..30).map(|n| format!("<!ENTITY e{n} \"&e{0};&e{0};&e{0};&e{0};\">", n - 1)).collect();
    let text = format!("<!DOCTYPE p [<!ENTITY e0 \"x\">{entities}]><platform version=\"4\">&e29;</platform>");
    assert!(Machine::from_platform(&text, "p.xml").is_err());
}
