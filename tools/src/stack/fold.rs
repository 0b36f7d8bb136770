//! Frames for people: those of vmpi as one, those of Python's interpreter as the script's, what lies before the program's beginning not at all.

use super::capture::At;
use super::modules::Modules;
use super::names::{Frame, Names};
use super::python::{self, Python};
use std::path::Path;
use vmpi_shared::crash::Place;

/// How a program ends itself: what runs within is of no interest.
const ENDS: [&str; 2] = ["exit", "abort"];

/// What is to be shown of the frames at these addresses, of a thread in which Python may run.
pub fn places(addresses: &[At], modules: &Modules, names: &mut Names, python: (&Python, i32)) -> Vec<Place> {
    let script = script(addresses, modules, names, python);
    let mut places = Vec::new();
    let mut at = 0;
    while at < addresses.len() {
        if !script.is_empty() && in_python(addresses[at], modules) {
            places = without_ends(places);
            places.extend(script);
            return places;
        }
        let in_vmpi = |at: usize, names: &mut Names| names.in_vmpi(modules, *addresses.get(at)?).map(str::to_owned);
        if let Some(mut function) = in_vmpi(at, names) {
            // The outermost of them is what the program has called.
            let first = at;
            while let Some(outer) = in_vmpi(at + 1, names) {
                at += 1;
                function = outer;
            }
            if addresses.get(at + 1).is_some_and(|at| !at.returns) {
                // A signal has interrupted the program, which has called nothing.
                function.clear();
            }
            let frame = names.frames(modules, addresses[first]).swap_remove(0);
            let function = if function.is_empty() { "?".to_owned() } else { function };
            let module = Path::new(&frame.module).file_name().unwrap_or_default().to_string_lossy().into_owned();
            places.push(Place { function, at: module, in_vmpi: true, in_source: false });
            while addresses.get(at + 1).is_some_and(|next| next.returns && is_binding(*next, modules)) {
                at += 1;
            }
        } else {
            places.extend(names.frames(modules, addresses[at]).iter().map(place));
        }
        at += 1;
    }
    leave_out(places)
}

fn in_python(at: At, modules: &Modules) -> bool {
    modules.find(at.address).is_some_and(|mapped| python::is_interpreter(&mapped.path))
}

/// The script's frames of such a thread; none if Python is not on its stack.
pub fn script(addresses: &[At], modules: &Modules, names: &mut Names, (python, tid): (&Python, i32)) -> Vec<Place> {
    let mut own = addresses.iter().filter(|at| python.is_there && in_python(**at, modules)).peekable();
    if own.peek().is_none() {
        return Vec::new();
    }
    let ends = |frame: &Frame| frame.function.as_deref() == Some(python::FINALIZE);
    match python.frames(tid) {
        [] if own.any(|at| names.frames(modules, *at).iter().any(ends)) => vec![python::at_end()],
        frames => frames.to_vec(),
    }
}

fn place(frame: &Frame) -> Place {
    let function = frame.function.clone().unwrap_or_else(|| "?".into());
    Place {
        function: python::cython_name(&function).unwrap_or(function),
        at: frame.place(),
        in_vmpi: false,
        in_source: frame.file.is_some() && frame.line.is_some(),
    }
}

/// Is it libc's, or the loader's?
fn is_libcs(place: &Place) -> bool {
    is_libcs_file(&place.at)
}

/// Is the file of this name libc's, or the loader?
pub fn is_libcs_file(name: &str) -> bool {
    ["libc.so", "libc-", "ld-linux", "libpthread"].iter().any(|of| name.starts_with(of))
}

/// Is it Open MPI's own library of Fortran's modules or of the C++ bindings, through which programs call vmpi's?
pub fn is_binding(at: At, modules: &Modules) -> bool {
    let name = modules.find(at.address).and_then(|mapped| mapped.path.file_name());
    name.is_some_and(|name| ["libmpi_usempi", "libmpi_cxx.so"].iter().any(|of| name.to_string_lossy().starts_with(of)))
}

/// Without what starts a program or a thread, and without what runs in `exit` and `abort`.
fn leave_out(places: Vec<Place>) -> Vec<Place> {
    let mut places = without_ends(places);
    let whole = places.clone();
    if let Some(main) = places.iter().rposition(|place| place.function == "main") {
        places.truncate(main + 1);
    }
    while places.last().is_some_and(|last| is_libcs(last) || last.function == "_start") {
        places.pop();
    }
    if places.is_empty() { whole } else { places }
}

/// Without what runs in `exit` and `abort`.
fn without_ends(mut places: Vec<Place>) -> Vec<Place> {
    let ends = |place: &Place| is_libcs(place) && ENDS.contains(&place.function.as_str());
    let within = |place: &&Place| (place.in_vmpi || is_libcs(place)) && !ends(place);
    let end = places.iter().take_while(within).count();
    if places.get(end).is_some_and(ends) {
        places.drain(..end);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(list: &[(&str, &str)]) -> Vec<Place> {
        let place = |(function, at): &(&str, &str)| Place {
            function: (*function).into(),
            at: (*at).into(),
            in_vmpi: at.starts_with("libvmpi"),
            in_source: at.contains(".c:"),
        };
        list.iter().map(place).collect()
    }

    #[test]
    fn what_starts_and_ends_a_program_is_left_out() {
        let start = [("?", "libc.so.6+0x1"), ("__libc_start_main", "libc.so.6+0x2"), ("_start", "a.out+0x3")];
        let own = [("work", "a.c:3"), ("main", "a.c:9")];
        assert_eq!(leave_out(places(&[&own[..], &start].concat())), places(&own));
        let exit = [("?", "libvmpi_mpich.so"), ("?", "libc.so.6+0x7"), ("exit", "libc.so.6+0x9")];
        assert_eq!(leave_out(places(&[&exit[..], &own, &start].concat())), places(&[&exit[2..], &own].concat()));
        // Of a program that only waits in libc something is left.
        assert_eq!(leave_out(places(&start)), places(&start));
        let thread = [("body", "a.c:5"), ("?", "libc.so.6+0x1"), ("?", "libc.so.6+0x2")];
        assert_eq!(leave_out(places(&thread)), places(&thread[..1]));
    }
}
