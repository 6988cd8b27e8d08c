// SPDX-License-Identifier: Apache-2.0
// image / threads
//
// Idea     a team shares the bands of rows and panels of columns.
// Changes  against simd: the same lines on every core.
// Cost     the same; the memory bus is shared.
// Limits   waking the team takes microseconds: small calls are left to one thread.
// Tried    -
// Source   -
#include "rung/ops/image/cpu/detail/engine.hpp"

namespace rung {
namespace {

double estimate(const Image::Args& args, const Context& context) {
  // With one thread the same as simd: a hair more, so that the choice is not a toss.
  return 1.001 * image_cpu::seconds(args, image_cpu::useful_threads(args, context));
}

void run(const Image::Args& args, Context& context) {
  image_cpu::run(args, context, image_cpu::useful_threads(args, context));
}

const Rung<Image> self{
    {.name = "threads", .step = 30, .after = "simd", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
