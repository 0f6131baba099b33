//! The guest's heap: std's allocator, with a first arena that the memory has from the start.
//!
//! A fresh instance runs each junction. An allocator that begins by growing the memory makes the host change the
//! protection of pages twice for every instance, which is a quarter of what an instance costs and stops all processors
//! for a moment. An arena in the memory's zeroed part costs nothing until it is touched.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;

use dlmalloc::{Allocator, Dlmalloc};

/// What most junctions never outgrow, in bytes.
const ARENA: usize = 128 * 1024;

/// What a WebAssembly memory grows by, in bytes.
const PAGE: usize = 64 * 1024;

#[global_allocator]
static HEAP: Heap = Heap(UnsafeCell::new(Dlmalloc::new_with_allocator(Pages::new())));

struct Heap(UnsafeCell<Dlmalloc<Pages>>);

// SAFETY: without atomics a WebAssembly instance has one thread.
unsafe impl Sync for Heap {}

// SAFETY: every call is handed to dlmalloc with the layout it came with; nothing else touches the cell.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { (*self.0.get()).malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { (*self.0.get()).calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { (*self.0.get()).free(pointer, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe { (*self.0.get()).realloc(pointer, layout.size(), layout.align(), size) }
    }
}

/// A part of the memory that is there, and zero, when an instance starts.
#[repr(align(16))]
struct Arena(UnsafeCell<[u8; ARENA]>);

// SAFETY: as for the heap.
unsafe impl Sync for Arena {}

static FIRST: Arena = Arena(UnsafeCell::new([0; ARENA]));

/// Where dlmalloc gets memory from: the arena once, then the end of the memory.
struct Pages {
    is_arena_given: core::sync::atomic::AtomicBool,
}

impl Pages {
    const fn new() -> Self {
        Self { is_arena_given: core::sync::atomic::AtomicBool::new(false) }
    }

    fn grow(size: usize) -> (*mut u8, usize, u32) {
        let pages = size.div_ceil(PAGE);
        let before = core::arch::wasm32::memory_grow(0, pages);
        if before == usize::MAX {
            return (ptr::null_mut(), 0, 0);
        }
        let start = before * PAGE;
        // A region may not end where addresses wrap to zero.
        let end_kept_free = if start.wrapping_add(pages * PAGE) == 0 { 16 } else { 0 };
        (ptr::without_provenance_mut(start), pages * PAGE - end_kept_free, 0)
    }
}

// SAFETY: the arena is given once, and what the memory grew by is nobody else's.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        use core::sync::atomic::Ordering::Relaxed;
        if size <= ARENA && !self.is_arena_given.swap(true, Relaxed) {
            return (FIRST.0.get().cast(), ARENA, 0);
        }
        Self::grow(size)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}
