// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's declarations as those who implement them see them: what programs call leaves
// librung_emulate.so, all else stays inside.
#pragma once

#pragma GCC visibility push(default)
#include "rung_cuda/runtime_templates.h"
#pragma GCC visibility pop

#include <string>

namespace rung::cuda {

// --- errors, in errors.cpp ---

/// Records what a function of the API returns as the last error, and returns it. Once the device
/// has failed, every call returns that failure until cudaDeviceReset.
cudaError_t remember(cudaError_t error);
/// Returns the device's failure, which all calls return from then on; cudaSuccess where there is
/// none.
cudaError_t device_failure();
void set_device_failure(cudaError_t error);

// --- problems told to the user, in report.cpp ---

/// Notes a launch that the device would refuse. It is reported at the program's end unless the
/// program asks for its error by then: a program that handles it is right.
void note_refused_launch(const LaunchConfig& config, const std::string& why);
/// Notes that the program has asked for its last error. Calls whose errors were ignored are
/// forgotten as well.
void forget_refused_launch();
/// Notes, for people, why the call that this thread makes fails.
void note_reason(std::string why);
/// Reports a kernel that the simulator gave up. Returns the error that the program gets for it.
cudaError_t report_kernel_failure(const std::string& message);
/// Frees what a kernel that has ended has freed, in heap.cpp.
void free_kernels_heap();
/// cudaMalloc and cudaFree called by a thread of a kernel, in heap.cpp. `code`: the return address
/// of the call.
void* allocate_in_kernel(std::size_t bytes);
void free_in_kernel(void* memory, const void* code);
/// Ends the session and writes what it has found; the program is about to end.
void write_report();
/// Adds refused launches to the session's findings and forgets the reports so far: the caller takes
/// the findings.
void hand_over_findings();
/// Returns the findings so far, for a program that is about to crash. The text is never freed, and
/// only findings change it.
const char* findings_as_text();
/// Reports an error of host code; `code`: the return address of its call.
void report_misuse(const char* kind, const std::string& message, const void* code);

// --- time, in clock.cpp ---

/// Advances the simulated time by the rough duration of an operation of the device.
void advance_clock(double nanoseconds);
double clock_now();
double copy_time(double bytes, cudaMemcpyKind kind);
double kernel_time(const LaunchConfig& config);

}  // namespace rung::cuda
