// SPDX-License-Identifier: Apache-2.0
// Functions of the program with two versions: with hooks at accesses and without.
#pragma once

namespace rung::cuda {

using KernelCall = void (*)(const void* call);
/// Returns the version without hooks, or the function itself if there is none.
KernelCall without_hooks(KernelCall call);

}  // namespace rung::cuda
