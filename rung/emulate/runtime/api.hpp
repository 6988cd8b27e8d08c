// SPDX-License-Identifier: Apache-2.0
// Internal declarations of the CUDA runtime. Functions that programs call are exported from
// librung_emulate.so; all others are hidden.
#pragma once

#pragma GCC visibility push(default)
#include "rung_cuda/runtime_templates.h"
#pragma GCC visibility pop

#include <string>

namespace rung::cuda {

// --- errors, in errors.cpp ---

/// Records the result of an API function as the last error, and returns it. After a device failure
/// every call returns the failure's code until cudaDeviceReset.
cudaError_t remember(cudaError_t error);
/// Returns the error code of the device's failure; cudaSuccess if there is none.
cudaError_t device_failure();
void set_device_failure(cudaError_t error);

// --- reports to the user, in report.cpp ---

/// Records a launch that the device rejects. It is reported at the program's end unless the program
/// has queried the error by then.
void note_refused_launch(const LaunchConfig& config, const std::string& why);
/// Records that the program has queried its last error, which also clears ignored errors.
void forget_refused_launch();
/// Records the reason for the current call's failure, for the report.
void note_reason(std::string why);
/// Reports a kernel that the simulator aborted. Returns the error code for the program.
cudaError_t report_kernel_failure(const std::string& message);
/// Frees memory that a completed kernel has released; in heap.cpp.
void free_kernels_heap();
/// Implements cudaMalloc and cudaFree in kernels; in heap.cpp. `code`: return address of the call.
void* allocate_in_kernel(std::size_t bytes);
void free_in_kernel(void* memory, const void* code);
/// Ends the session and writes its findings. Called at the program's end.
void write_report();
/// Moves reports of rejected launches to the session's findings, for a caller that fetches the
/// findings.
void hand_over_findings();
/// Returns the text of the findings so far, for a crashing program. The text is never freed, and is
/// rebuilt only when findings change.
const char* findings_as_text();
/// Reports an error in host code. `code`: return address of the program's call.
void report_misuse(const char* kind, const std::string& message, const void* code);

// --- time, in clock.cpp ---

/// Advances the simulated time by the approximate duration of a device operation, in nanoseconds.
void advance_clock(double nanoseconds);
double clock_now();
double copy_time(double bytes, cudaMemcpyKind kind);
double kernel_time(const LaunchConfig& config);

}  // namespace rung::cuda
