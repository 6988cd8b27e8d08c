// SPDX-License-Identifier: Apache-2.0
// The engine of the rungs "simd" and "threads": every valid call, on a team of threads.
#pragma once

#include "rung/ops/image/op/image.hpp"

namespace rung::image_cpu {

/// The threads that the call has work for, of those that the context has.
int useful_threads(const Image::Args& args, const Context& context);

/// How long so many threads take, for the choice between the rungs.
double seconds(const Image::Args& args, int threads);

void run(const Image::Args& args, Context& context, int threads);

}  // namespace rung::image_cpu
