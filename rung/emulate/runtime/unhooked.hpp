// SPDX-License-Identifier: Apache-2.0
// Functions of the program that exist in two versions: with and without hooks at accesses.
#pragma once

namespace rung::cuda {

using KernelCall = void (*)(const void* call);
/// Returns the version without hooks; the function itself if there is none.
KernelCall without_hooks(KernelCall call);

}  // namespace rung::cuda
