//! Settings of the memory allocator.

/// Makes the allocator of glibc keep some freed memory for the next call. A program should call it once, before it
/// starts threads.
///
/// By default, glibc returns the buffers of a large file to the system after each call, and for the next call the
/// system provides them again, page by page. For an edit in a file of 1 MB that takes longer than the edit itself.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// Allocations up to this size come from memory that is kept, and so much of it is kept for each arena.
        const KEPT_BYTES: i32 = 4 << 20;
        // By default there are eight arenas for each processor, and each keeps memory of its own.
        let arenas = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let arenas = i32::try_from(arenas).unwrap_or(2).clamp(2, 8);
        let settings = [
            (libc::M_MMAP_THRESHOLD, KEPT_BYTES),
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
            (libc::M_ARENA_MAX, arenas),
        ];
        for (name, value) in settings {
            // SAFETY: The call takes numbers only. If it fails, the default stays.
            #[expect(unsafe_code, reason = "there is no safe wrapper for this call")]
            unsafe {
                libc::mallopt(name, value);
            }
        }
    }
}
