//! The wait-for graph for Graphviz.

use super::Why;

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A digraph: a node per rank, an edge from who waits to who could end it; circles are red.
pub fn dot(why: &Why) -> String {
    let circle = |from: u32, to: u32| {
        why.graph.cycles.iter().any(|cycle| {
            cycle.iter().enumerate().any(|(at, rank)| *rank == from && cycle[(at + 1) % cycle.len()] == to)
        })
    };
    let mut text = format!("digraph job{} {{\n  node [shape=box];\n", why.waits.job);
    for rank in &why.waits.ranks {
        let what = rank.site.as_ref().map_or(String::new(), |site| format!("\\n{} {}", site.function, site.place));
        let what = if what.is_empty() && !rank.call.is_empty() { format!("\\n{}", rank.call) } else { what };
        text.push_str(&format!(
            "  r{} [label=\"rank {} {}{}\"];\n",
            rank.rank,
            rank.rank,
            quoted(&rank.state),
            what.replace('"', "\\\"")
        ));
    }
    for edge in &why.graph.edges {
        let color = if circle(edge.from, edge.to) { " [color=red, penwidth=2]" } else { "" };
        text.push_str(&format!("  r{} -> r{}{color};\n", edge.from, edge.to));
    }
    text.push_str("}\n");
    text
}
