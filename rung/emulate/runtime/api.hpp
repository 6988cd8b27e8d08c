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

/// What every function of the API returns its error through: it becomes the last error. Once the
/// device has failed, every call returns that failure until cudaDeviceReset.
cudaError_t remember(cudaError_t error);
/// The failure that all calls return by now; cudaSuccess: none.
cudaError_t device_failure();
void set_device_failure(cudaError_t error);

// --- problems told to the user, in report.cpp ---

/// A launch that the device would refuse. Told at the program's end unless the program has asked
/// for its error by then: a program that handles it is right.
void note_refused_launch(const LaunchConfig& config, const std::string& why);
/// The program has asked for its last error. Forgets calls whose errors were ignored as well.
void forget_refused_launch();
/// Why the call fails that this thread makes, for people.
void note_reason(std::string why);
/// A kernel that the simulator gave up. The error that the program gets of it.
cudaError_t report_kernel_failure(const std::string& message);
/// Frees what a kernel that has ended has freed, in heap.cpp.
void free_kernels_heap();
/// A thread's cudaMalloc and cudaFree, likewise. `code`: behind the call.
void* allocate_in_kernel(std::size_t bytes);
void free_in_kernel(void* memory, const void* code);
/// Ends the session and writes what it has found; the program is about to end.
void write_report();
/// Adds refused launches to the session's findings, and forgets what was told of the session so
/// far: its findings are about to be taken.
void hand_over_findings();
/// What was found so far, for when there is no more to be had: never freed, and changed by findings
/// alone.
const char* findings_as_text();
/// Something that host code did; `code`: behind its call.
void report_misuse(const char* kind, const std::string& message, const void* code);

// --- time, in clock.cpp ---

/// The simulated time goes on by what an operation of the device would roughly take.
void advance_clock(double nanoseconds);
double clock_now();
double copy_time(double bytes, cudaMemcpyKind kind);
double kernel_time(const LaunchConfig& config);

}  // namespace rung::cuda
