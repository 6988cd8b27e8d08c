// SPDX-License-Identifier: Apache-2.0
// Thread-local variables of a simulated thread, in a separate library, librung_thread.so.
// Initial-exec variables occupy static TLS, little of which is left for libraries loaded by
// dlopen(), as into Python: enough for these variables, but not for all thread-local data of
// librung.so and its dependencies.
#include "rung/simt/record/request.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {

constinit thread_local uint3 thread_index{};
constinit thread_local uint3 block_index{};
constinit thread_local dim3 block_extent{};
constinit thread_local dim3 grid_extent{};
constinit thread_local std::byte* shared_base = nullptr;
constinit thread_local void* launch_data = nullptr;
constinit thread_local int atomics_left = atomics_before_yield;
constinit thread_local bool memory_changed = false;

constinit thread_local Worker* this_worker = nullptr;

constinit thread_local record::Tracer record::tracer;

}  // namespace rung::simt
