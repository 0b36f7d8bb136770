//! PMIx, as PRRTE, Open MPI's mpirun and Slurm's pmix plugin speak it: by the client library that they bring along, libpmix.so.2, loaded here.
//!
//! Only what has been the same since version 2 is used: six functions, strings, and numbers. The launcher's own library comes first: PRRTE of PyPI's Open
//! MPI understands Debian's older one, and prints an error of its own for each process.

use super::Wire;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

/// How far above a process its launcher is looked for.
const GENERATIONS: usize = 6;
/// Bytes of a name space's name, with the zero at its end.
const NAMESPACE_BYTES: usize = 256;
const RANK_WILDCARD: u32 = u32::MAX - 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;
/// For all processes, on this node and others.
const GLOBAL: u8 = 3;

#[repr(C)]
#[derive(Clone)]
struct Process {
    namespace: [c_char; NAMESPACE_BYTES],
    rank: u32,
}

/// pmix_value_t: what kind of data, and the data; larger than any version has it.
#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
    room: [u64; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
union Data {
    string: *mut c_char,
    number: u32,
    all: u64,
}

type Init = unsafe extern "C" fn(*mut Process, *mut c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const c_void, usize) -> c_int;
type Get = unsafe extern "C" fn(*const Process, *const c_char, *const c_void, usize, *mut *mut Value) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;

/// The library's functions.
struct Library {
    init: Init,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    finalize: Finalize,
}

pub struct Pmix {
    library: Library,
    own: Process,
    size: u32,
}

impl Library {
    fn load() -> Result<Library, String> {
        let named = std::env::var("PMIX_PREFIX").map(|prefix| format!("{prefix}/lib/libpmix.so.2")).ok();
        let names = named.into_iter().chain(launchers_own()).chain(["libpmix.so.2", "libpmix.so"].map(String::from));
        let mut handle = ptr::null_mut();
        for name in names.filter_map(|name| CString::new(name).ok()) {
            // SAFETY: loads a library by its name, which ends with zero; it stays loaded.
            handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !handle.is_null() {
                break;
            }
        }
        if handle.is_null() {
            return Err("there is no libpmix.so.2 among the libraries of this process (add its directory to LD_LIBRARY_PATH); or start the program with vmpirun".into());
        }
        let function = |name: &CStr| {
            // SAFETY: the library is loaded, and the name ends with zero.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if address.is_null() { Err(format!("libpmix has no {}", name.to_string_lossy())) } else { Ok(address) }
        };
        // SAFETY: these functions have had these types since PMIx 2.
        unsafe {
            Ok(Library {
                init: std::mem::transmute::<*mut c_void, Init>(function(c"PMIx_Init")?),
                put: std::mem::transmute::<*mut c_void, Put>(function(c"PMIx_Put")?),
                commit: std::mem::transmute::<*mut c_void, Commit>(function(c"PMIx_Commit")?),
                fence: std::mem::transmute::<*mut c_void, Fence>(function(c"PMIx_Fence")?),
                get: std::mem::transmute::<*mut c_void, Get>(function(c"PMIx_Get")?),
                finalize: std::mem::transmute::<*mut c_void, Finalize>(function(c"PMIx_Finalize")?),
            })
        }
    }
}

/// The library that the launcher uses, which is a parent of this process or its parent's (a script between).
fn launchers_own() -> Option<String> {
    let mut process = procfs::process::Process::myself().ok()?;
    for _ in 0..GENERATIONS {
        process = procfs::process::Process::new(process.stat().ok()?.ppid).ok()?;
        // Another user's cannot be read.
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", process.pid())).unwrap_or_default();
        if let Some(path) = library_in(&maps) {
            return Some(path.to_string());
        }
    }
    None
}

/// The path of libpmix in what the kernel says of a process's memory.
fn library_in(maps: &str) -> Option<&str> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    paths.into_iter().find(|path| path.rsplit('/').next().is_some_and(|file| file.starts_with("libpmix.so.2")))
}

fn done(what: &str, status: c_int) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{what} returns {status}")) }
}

impl Pmix {
    pub fn start() -> Result<Pmix, String> {
        let library = Library::load()?;
        let mut own = Process { namespace: [0; NAMESPACE_BYTES], rank: 0 };
        // SAFETY: it writes its own name space and rank; no further wishes are passed.
        done("PMIx_Init", unsafe { (library.init)(&mut own, ptr::null_mut(), 0) })?;
        let mut pmix = Pmix { library, own, size: 0 };
        let all = Process { rank: RANK_WILDCARD, ..pmix.own.clone() };
        let value = pmix.look_up(&all, c"pmix.job.size")?;
        // SAFETY: a value that the library has made; its kind says which member is there.
        pmix.size = match unsafe { ((*value).kind, (*value).data.number) } {
            (UINT32, size) => size,
            (kind, _) => return Err(format!("pmix.job.size is of kind {kind}")),
        };
        Ok(pmix)
    }

    /// What a process has put, or the server knows.
    fn look_up(&self, process: &Process, key: &CStr) -> Result<*mut Value, String> {
        let mut value = ptr::null_mut();
        // SAFETY: the process and the key are ours; the value is the library's, and stays.
        let status = unsafe { (self.library.get)(process, key.as_ptr(), ptr::null(), 0, &mut value) };
        done(&format!("PMIx_Get of {}", key.to_string_lossy()), status)?;
        if value.is_null() { Err(format!("PMIx_Get of {} gives nothing", key.to_string_lossy())) } else { Ok(value) }
    }
}

impl Wire for Pmix {
    fn rank(&self) -> u32 {
        self.own.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn job(&self) -> String {
        let name: Vec<u8> = self.own.namespace.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
        format!("{} {}", nix::unistd::geteuid(), String::from_utf8_lossy(&name))
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), String> {
        let text = |text: &str| CString::new(text).map_err(|_| format!("{text:?} has a zero in it"));
        let (key, value) = (text(key)?, text(value)?);
        let mut value = Value { kind: STRING, data: Data { string: value.as_ptr().cast_mut() }, room: [0; 4] };
        // SAFETY: the library copies the string, whose owner lives until behind the call.
        done("PMIx_Put", unsafe { (self.library.put)(GLOBAL, key.as_ptr(), &mut value) })?;
        // SAFETY: no arguments.
        done("PMIx_Commit", unsafe { (self.library.commit)() })
    }

    fn fence(&mut self) -> Result<(), String> {
        // SAFETY: no list: all processes of the name space.
        done("PMIx_Fence", unsafe { (self.library.fence)(ptr::null(), 0, ptr::null(), 0) })
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, String> {
        let process = Process { rank, ..self.own.clone() };
        let name = CString::new(key).map_err(|error| error.to_string())?;
        let value = self.look_up(&process, &name)?;
        // SAFETY: a value that the library has made; a string of it ends with zero.
        unsafe {
            match ((*value).kind, (*value).data.string) {
                (STRING, string) if !string.is_null() => Ok(CStr::from_ptr(string).to_string_lossy().into_owned()),
                (kind, _) => Err(format!("{key} of rank {rank} is of kind {kind}")),
            }
        }
    }

    fn is_done(&self) -> bool {
        // PRRTE takes the code of the first process that ends badly, and the library's thread is not wanted in a rank.
        true
    }

    fn abort(&mut self, _: i32) {}

    fn finish(&mut self) -> Result<(), String> {
        // SAFETY: no arguments that are looked at.
        done("PMIx_Finalize", unsafe { (self.library.finalize)(ptr::null(), 0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_library_is_found_in_its_memory() {
        let maps = "7f01-7f02 r-xp 00000000 fe:00 17  /usr/lib/libprrte.so.3\n\
                    7f03-7f04 r--p 00000000 fe:00 18                 /opt/my mpi/lib/libpmix.so.2.13.2\n\
                    7f05-7f06 rw-p 00000000 00:00 0\n";
        assert_eq!(library_in(maps), Some("/opt/my mpi/lib/libpmix.so.2.13.2"));
        assert_eq!(library_in("7f01-7f02 r-xp 00000000 fe:00 17  /usr/lib/libpmix.so.200x/libc.so.6\n"), None);
        assert_eq!(launchers_own(), None, "cargo is no launcher");
    }
}
