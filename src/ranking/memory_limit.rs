//! Default memory limit for rank indexes and the user directory.

/// Part of the memory available to the process.
const SHARE: u64 = 4;

/// A quarter of the memory available to the process, in bytes: of the machine's, or of its
/// container's limit where that is less.
pub(crate) fn default_bytes() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    system.total_memory().min(limit) / SHARE
}
