// SPDX-License-Identifier: Apache-2.0
// What CUDA adds to C++ and no header can give: launches, kernels, shared variables, inline PTX.
// Each is rewritten into plain C++ on top of rung/emulate/include, after the preprocessor has run:
// macros that hold launches are no special case, and neither are the user's own headers.
#pragma once

#include <string>

#include "rung/emulate/token.hpp"

namespace rung::emulate {

/// A preprocessed CUDA source as C++. Throws Error(unsupported) that names file, line and what is
/// not supported, Error(invalid_argument) for what is no CUDA.
std::string rewrite(const std::string& preprocessed);

/// The same with launches as plain calls, kernel(x): a wrong one is an error of the user's line.
/// It can be compiled, but not run.
std::string rewrite_for_messages(const std::string& preprocessed);

/// Returns whether there are asm statements, which need rung_cuda/ptx.h.
bool holds_assembly(const std::string& preprocessed);

/// Returns whether the user's own code has volatile variables; `asm volatile` is none.
bool holds_volatile(const std::string& preprocessed);

/// Throws Error(invalid_argument) where a device function calls one that is the host's alone.
void check_host_calls(const TokenStream& tokens);
/// Takes away __device__ and __host__, which words.h has left to be seen.
void erase_execution_spaces(TokenStream& tokens);
/// kernel<<<grid, block>>>(x) as launcher("kernel", [=](auto& a) { kernel(a); }).with(grid,
/// block)(x). The arguments are evaluated once; the lambda calls the kernel as the program would,
/// so that deduction, conversions and default arguments work as they do there.
void rewrite_launches(TokenStream& tokens);
/// kernel(x), in the same columns.
void rewrite_launches_as_calls(TokenStream& tokens);
/// Each definition of a __global__ function tells its name when it starts.
void rewrite_kernels(TokenStream& tokens);
/// A shared variable becomes a reference into the memory of the block that runs.
void rewrite_shared(TokenStream& tokens);
/// Constants of a file are its own, as in nvcc without separate compilation: two files may have
/// some of one name. Not where any is declared extern.
void rewrite_constants(TokenStream& tokens);
/// cudaMemcpy(...); by itself hands its error to ignored(), which tells of it at the program's end.
void rewrite_ignored_errors(TokenStream& tokens);
/// memcpy, memmove and memset become functions whose accesses are seen.
void rewrite_memory_calls(TokenStream& tokens);
/// asm("...") statements of PTX become calls.
void rewrite_assembly(TokenStream& tokens);

}  // namespace rung::emulate
