// SPDX-License-Identifier: Apache-2.0
// image / threads
//
// Idea     A team of threads partitions the tiles; each thread runs the filter's kernel on its
//          tiles.
// Changes  Against deinterleaved, simd and running_box: the same kernels on every core.
// Cost     As deinterleaved, simd and running_box; the memory bus is shared.
// Limits   Waking the team takes microseconds: small problems run on one thread.
#include "rung/cpu/worth.hpp"
#include "rung/ops/image/cpu/detail/kernels.hpp"
#include "rung/ops/image/cpu/detail/lines.hpp"

namespace rung {
namespace {
using namespace image_cpu;

/// Returns the operations per result: a constant plus a term per tap.
double operations_of(const Image::Args& args) {
  const double taps = args.filter() == ImageFilter::box ? 3 : args.taps();
  return static_cast<double>(args.y.size()) * (7.5 + taps);
}
int threads_of(const Image::Args& args, const Context& context) {
  return cpu::threads_worth(operations_of(args), 250e3, context.threads());
}

Work work(const Image::Args& args, const Context& context) {
  return {.operations = operations_of(args), .threads = threads_of(args, context)};
}

void run(const Image::Args& args, Context& context) {
  const bool is_grey = args.filter() == ImageFilter::grey;
  const bool is_box = args.filter() == ImageFilter::box && args.x.dtype == DType::u8;
  const Kernel kernel = is_grey ? deinterleaved : is_box ? running_box : simd;
  const std::int64_t tiles = (is_grey ? grey_tiles(args) : tiles_of(args)).count();
  const std::int64_t bytes = is_grey ? grey_scratch_bytes : Scratch::bytes(args);
  const int threads = threads_of(args, context);
  auto* const scratch =
      static_cast<std::byte*>(context.workspace(static_cast<std::size_t>(threads * bytes)));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    kernel(args, team.share(tiles), scratch + team.rank() * bytes);
  });
}

const Rung<Image> self{{.name = "threads", .step = 40, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
