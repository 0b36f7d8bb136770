//! What has been found goes to the daemon, each thing once.

use super::sites::Site;
use crate::guarded::EntryGuarded;
use crate::process::{self, endpoint_rank};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use vmpi_shared::control::{Finding, FindingKind, Findings, Party, Request};

/// Those that have been told.
static TOLD: EntryGuarded<Option<HashSet<u64>>> = EntryGuarded::new(None);

/// This rank, in `call` at `site`.
pub(crate) fn own(call: String, site: Site) -> Party {
    Party { ranks: [endpoint_rank()].into(), call, site: site.told() }
}

/// What is wrong with these calls.
pub(crate) fn tell(kind: FindingKind, parties: Vec<Party>, text: String) {
    let finding = Finding { kind, parties, text };
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    finding.text.hash(&mut hasher);
    for party in &finding.parties {
        (&party.ranks, &party.call).hash(&mut hasher);
        party.site.as_ref().map(|site| (&site.module, site.offset)).hash(&mut hasher);
    }
    let news = TOLD.with(|told| {
        let told = told.get_or_insert_default();
        told.len() < Findings::MOST && told.insert(hasher.finish())
    });
    if !news {
        return;
    }
    let words = alone(&finding);
    let request = Request::Found { finding: Box::new(finding) };
    // A daemon that is gone takes this process with it.
    if process::with_daemon(|daemon| daemon.send(&request, &[])).is_none() {
        eprint!("{words}");
    }
}

/// For a program that was started by itself, and has nobody who finds names for addresses.
fn alone(finding: &Finding) -> String {
    let about = finding.kind.about();
    let mut words = format!("vmpi: check: {}: {} (MPI 4.1, chapter {})\n", about.headline, about.rule, about.chapter);
    for party in &finding.parties {
        let site = party.site.as_ref().map_or(String::new(), |site| format!(" at {}+{:#x}", site.module, site.offset));
        words.push_str(&format!("  {}{site}\n", party.call));
    }
    words
}
