//! A memory cgroup for a daemon.

use std::path::{Path, PathBuf};

/// A memory cgroup of this test, with a limit; none if the system cannot create one.
pub struct Cgroup(pub PathBuf);

impl Cgroup {
    pub fn new(limit: &str) -> Option<Cgroup> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let candidates = own.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let path = path.trim_start_matches('/');
            match controllers {
                "" => Some((Path::new("/sys/fs/cgroup").join(path), "memory.max")),
                "memory" => {
                    let root = Path::new("/sys/fs/cgroup/memory");
                    Some((root.join(path), "memory.limit_in_bytes"))
                }
                _ => None,
            }
        });
        candidates.into_iter().find_map(|(parent, file)| {
            let folder = parent.join(format!("volley-test-{}", std::process::id()));
            std::fs::create_dir(&folder).ok()?;
            let group = Cgroup(folder);
            std::fs::write(group.0.join(file), limit).ok()?;
            Some(group)
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}
