// SPDX-License-Identifier: Apache-2.0
// Functions of the program that exist twice: with hooks at accesses and without.
#pragma once

namespace rung::cuda {

using KernelCall = void (*)(const void* call);
/// Returns the version without hooks, or the function itself where it has none.
KernelCall without_hooks(KernelCall call);

}  // namespace rung::cuda
