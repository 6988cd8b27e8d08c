// SPDX-License-Identifier: Apache-2.0
// The default stream of programs that are compiled with --default-stream per-thread: stream 0 is a
// stream of the calling host thread. If one source is compiled in this way, the whole program is
// affected, since the runtime has no second version of its functions.
#pragma once

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
extern "C" void rung_emulate_per_thread_streams();
namespace {
__attribute__((unused)) const bool rung_streams_are_per_thread =
    (rung_emulate_per_thread_streams(), true);
}
#endif
