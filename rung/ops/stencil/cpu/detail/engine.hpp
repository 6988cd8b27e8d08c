// SPDX-License-Identifier: Apache-2.0
// The engine of the rungs "simd" and "threads": every valid call, in bands of rows and panels of
// columns, on a team of threads.
#pragma once

#include "rung/ops/stencil/op/stencil.hpp"

namespace rung::stencil_cpu {

/// The threads that the call has work for, of those that the context has.
int useful_threads(const Stencil::Args& args, const Context& context);

/// How long so many threads take, for the choice between the rungs.
double seconds(const Stencil::Args& args, int threads);

void run(const Stencil::Args& args, Context& context, int threads);

}  // namespace rung::stencil_cpu
