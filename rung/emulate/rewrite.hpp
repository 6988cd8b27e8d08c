// SPDX-License-Identifier: Apache-2.0
// CUDA's language extensions that no header can provide: launches, kernels, shared variables,
// inline PTX. After preprocessing they are rewritten to C++ that uses rung/emulate/include, so that
// macros with launches and the user's headers need no special treatment.
#pragma once

#include <string>

#include "rung/emulate/token.hpp"

namespace rung::emulate {

/// Rewrites a preprocessed CUDA source to C++. Throws Error(unsupported) with file, line and name
/// of an unsupported feature, and Error(invalid_argument) for text that is not CUDA.
/// `whole`: no other file uses the source's device code, as in nvcc without -rdc.
std::string rewrite(const std::string& preprocessed, bool whole = false);

/// Rewrites launches to plain calls, kernel(x), so that the compiler reports a wrong launch in the
/// user's line. The result compiles, but must not be run.
std::string rewrite_for_messages(const std::string& preprocessed);

/// Returns true if the source has asm statements, which need rung_cuda/ptx.h.
bool holds_assembly(const std::string& preprocessed);

/// Returns true if the user's own code declares volatile variables; `asm volatile` does not count.
bool holds_volatile(const std::string& preprocessed);

/// Throws Error(invalid_argument) if a device function calls a host-only function. Warns of host
/// functions that assign to variables of the device.
void check_host_calls(const TokenStream& tokens);
/// Gives internal linkage to namespace-scope functions and variables for the device only that the
/// source defines, as nvcc does without separate compilation: several files may use the same name.
void make_device_code_internal(TokenStream& tokens);
/// Removes __device__ and __host__, which words.h leaves in the preprocessed source.
void erase_execution_spaces(TokenStream& tokens);
/// Rewrites kernel<<<grid, block>>>(x) to launcher("kernel", [=](auto& a) { kernel(a);
/// }).with(grid, block)(x). The arguments are evaluated once; the lambda calls the kernel as the
/// program would, so that deduction, conversions and default arguments are unchanged.
void rewrite_launches(TokenStream& tokens);
/// Rewrites launches to plain calls, kernel(x), without changing columns.
void rewrite_launches_as_calls(TokenStream& tokens);
/// Inserts a prologue with the kernel's name into each __global__ function.
void rewrite_kernels(TokenStream& tokens);
/// Rewrites each shared variable to a reference into the running block's memory.
void rewrite_shared(TokenStream& tokens);
/// Gives file-scope constants internal linkage, as nvcc does without separate compilation, since
/// several files may use the same name. Has no effect with separate compilation, or if any constant
/// is declared extern.
void rewrite_constants(TokenStream& tokens);
/// Passes the result of a statement cudaMemcpy(...); to ignored(), which reports an error at the
/// program's end.
void rewrite_ignored_errors(TokenStream& tokens);
/// Redirects memcpy, memmove and memset to functions that record their accesses.
void rewrite_memory_calls(TokenStream& tokens);
/// Rewrites asm("...") statements with PTX to function calls.
void rewrite_assembly(TokenStream& tokens);

}  // namespace rung::emulate
