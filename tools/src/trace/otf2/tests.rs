use super::super::timeline::{Message, RankSlice, RegionSpan};
use super::communicators::Members;
use super::*;
use std::rc::Rc;
use vmpi_shared::trace::Within;

fn slice(from: Ns, until: Ns, did: RankDid, call: &str) -> RankSlice {
    RankSlice { from, until, did, call: Rc::from(call), peer: -1, tag: -1 }
}

fn span(from: Ns, until: Ns, name: &str) -> RegionSpan {
    RegionSpan { from, until, name: Rc::from(name), row: 0, begun: true, ended: true }
}

fn barrier(from: Ns, until: Ns, context: u32, rank: u32, size: u32) -> CollectiveCall {
    let within = Within { rank, size, peer: 0 };
    CollectiveCall { from, until, call: Rc::from("MPI_Barrier"), context, root: None, sent: 0, received: 0, within }
}

fn message(from: u32, to: u32, context: u32, within: Within, tag: i32) -> Message {
    let call = Rc::from("MPI_Send");
    Message { from, to, sent: 5, received: 90, bytes: 8, tag, call, collective: false, context, within }
}

/// A location's events in short: what it enters and leaves, by name.
fn told(archive: &Archive, rank: usize) -> String {
    let name = |region: &u32| archive.regions[*region as usize].0.as_str();
    let word = |(at, event): &(Ns, Event)| match event {
        Event::Enter(region) => format!("{at}+{}", name(region)),
        Event::Leave(region) => format!("{at}-{}", name(region)),
        Event::Send { to, comm, .. } => format!("{at}>{to}/{comm}"),
        Event::Receive { from, comm, .. } => format!("{at}<{from}/{comm}"),
        Event::CollectiveBegin => format!("{at}("),
        Event::CollectiveEnd { operation, comm, .. } => format!("{at}){operation}/{comm}"),
        Event::Recording(on) => format!("{at}{}", if *on { "on" } else { "off" }),
    };
    archive.locations[rank].1.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn stretches_are_nested_whatever_they_were() {
    use RankDid::{Ready, Running, Suspended};
    let rank = RankTrack {
        slices: vec![
            slice(0, 10, Running, ""),
            slice(10, 20, Suspended, "MPI_Recv"),
            slice(20, 25, Ready, "MPI_Recv"),
            slice(25, 40, Running, ""),
            slice(40, 50, Suspended, "MPI_Barrier"),
            slice(50, 100, Running, ""),
        ],
        regions: vec![span(5, 60, "a"), span(30, 80, "b"), span(70, 70, "c")],
        collectives: vec![barrier(39, 51, 0, 0, 1)],
        paused: vec![(90, 95)],
        ..RankTrack::default()
    };
    let timeline = Timeline { program: "/bin/app".into(), length: 100, ranks: vec![rank], ..Timeline::default() };
    assert_eq!(
        told(&Archive::of(&timeline, "here"), 0),
        "0+app 5+a 10+MPI_Recv 25-MPI_Recv 30+b 39+MPI_Barrier 39( 51)0/0 51-MPI_Barrier 60-b 60-a 60+b 70+c 70-c 80-b 90off 95on 100-app"
    );
}

#[test]
fn ranks_are_those_of_the_communicator_where_it_is_known() {
    let within = |rank, size, peer| Within { rank, size, peer };
    let mut ranks: Vec<RankTrack> = (0..3).map(|rank| RankTrack { rank, ..RankTrack::default() }).collect();
    // Context 8: ranks 2 and 0, in this order. Context 10: two of three are known. Context 12: between two groups.
    ranks[2].collectives = vec![barrier(10, 20, 8, 0, 2), barrier(30, 40, 0, 2, 3)];
    ranks[0].collectives = vec![barrier(10, 20, 2, 0, 1)];
    let messages = vec![
        message(0, 2, 8, within(1, 2, 0), 3),
        message(1, 2, 10, within(0, 3, 2), 3),
        message(1, 0, 12, within(0, 0, 0), 3),
        // vmpi's own.
        message(1, 0, 0, within(1, 3, 0), OWN_TAG_BIT),
    ];
    let archive = Archive::of(&Timeline { length: 100, ranks, messages, ..Timeline::default() }, "here");
    let members: Vec<(&str, &Members)> = archive.communicators.iter().map(|c| (c.name.as_str(), &c.members)).collect();
    let (all, two) = (Members::Ranks(vec![0, 1, 2]), Members::Ranks(vec![2, 0]));
    assert_eq!(
        members,
        [
            ("MPI_COMM_WORLD", &all),
            ("MPI_COMM_SELF", &Members::Oneself),
            ("communicator 8", &two),
            ("communicator 10, by ranks of the job", &all),
            ("communicator 12, by ranks of the job", &all)
        ]
    );
    assert!(told(&archive, 0).contains("5>0/2") && told(&archive, 0).contains("90<1/4"), "{}", told(&archive, 0));
    assert!(told(&archive, 2).contains("90<1/2") && told(&archive, 2).contains("90<1/3"), "{}", told(&archive, 2));
    assert!(told(&archive, 1) == "5>2/3 5>0/4", "{}", told(&archive, 1));
}
