// SPDX-License-Identifier: Apache-2.0
// scan / columns
//
// Idea     an axis that is not the last: neighboring lines are adjacent, so a vector holds one
//          element of each of them, and adding is all there is to do. A strip of lines walks down
//          together, its running values in L1.
// Changes  against look_back_threads: nothing is gathered or scanned within a vector; threads take
//          strips of lines, not chunks of one.
// Cost     x read and y written once, in runs as long as the strip is wide.
// Tried    on a 2-core Zen 5 vCPU, 4096 x 4096 floats, one thread: strips of 16 KiB (no faster),
//          asking for x two rows ahead (5 % slower than one), for y's next page (no gain).
//          Streaming stores, x's next row asked for and running values that are apart from y
//          modulo pages brought it from 9.6 ms to 3.3.
// Limits   lines that are adjacent, 8 bytes of them at least. Few, long lines keep few threads
//          busy, and each row of fewer than a vector waits for the one before.
// Source   -
#include <algorithm>

#include "rung/cpu/team.hpp"
#include "rung/ops/scan/cpu/detail/chunks.hpp"

namespace rung {
namespace {
using namespace scan_cpu;

constexpr std::int64_t page = 4096;

/// The innermost of the other axes, contiguous in both tensors, and the strips it is cut into.
struct Strips {
  std::int64_t width = 0;  // elements of the axis
  std::int64_t strip;      // elements per strip
  std::int64_t strips;     // of the axis
  std::int64_t count;      // of all

  explicit Strips(const Scan::Args& args) {
    const Collapsed<2>& lines = args.lines;
    const int last = lines.rank - 1;
    if (lines.rank == 0 || lines.strides[0][last] != 1 || lines.strides[1][last] != 1) return;
    width = lines.shape[last];
    // 4 KiB of each row: a page's worth for the prefetchers, and all running values in L1.
    strip = page / static_cast<std::int64_t>(size_of(args.x.dtype));
    strips = (width + strip - 1) / strip;
    count = lines.size() / width * strips;
  }
};

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  const Strips strips(args);
  const Kernel kernel = kernel_of(args.x.dtype, args.operation);
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  const int threads = useful_threads(args, context);
  // Running values of at most 8 bytes each, with room for the last vector's surplus and for a place
  // half a page away from y's, modulo pages: a load of what follows a store by a multiple of 4096
  // bytes is taken for a load of what was stored, and waits.
  const std::int64_t running_bytes = (strips.strip + 64) * 8 + page;
  const std::size_t place = (reinterpret_cast<std::uintptr_t>(args.y.data) + page / 2) % page;
  const bool stream = is_streamed(args);
  const std::size_t head_words = Heads::size(args);
  auto* words = static_cast<std::uint64_t*>(context.workspace(
      head_words * sizeof(std::uint64_t) + static_cast<std::size_t>(threads * running_bytes)));
  const Heads heads(args, words);
  auto* memory = reinterpret_cast<std::byte*>(words + head_words);
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range mine = team.share(strips.count);
    std::byte* running = memory + team.rank() * running_bytes + place / 64 * 64;
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      const std::int64_t column = i % strips.strips * strips.strip;
      const std::int64_t line = i / strips.strips * strips.width + column;
      const std::int64_t width = std::min(strips.strip, strips.width - column);
      const auto* x =
          static_cast<const std::byte*>(args.x.data) + args.lines.offset<0>(line) * size;
      auto* y = static_cast<std::byte*>(args.y.data) + args.lines.offset<1>(line) * size;
      for (std::int64_t begin = 0; begin < args.length();) {
        const std::int64_t end = heads.next(begin + 1, args.length());
        kernel.restart(running, strips.strip + 64);
        kernel.columns(x + begin * args.x_stride() * size, args.x_stride(),
                       y + begin * args.y_stride() * size, args.y_stride(), end - begin, width,
                       running, args.exclusive, stream);
        begin = end;
      }
    }
    if (stream) hwy::FlushStream();
  });
}

Support supports(const Scan::Args& args, const Context&) {
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  if (args.y.empty()) return unsupported("nothing to scan");
  if (Strips(args).width * size < 8) {
    return unsupported("fewer than 8 bytes of lines are adjacent");
  }
  return supported;
}

double estimate(const Scan::Args& args, const Context&) {
  // Independent of the number of threads, as the choice must be: other rungs add in other orders.
  const double bytes = Scan::cost(args).bytes;
  // Lines of one element are contiguous in any direction.
  const double contiguous_preferred = args.is_contiguous() && args.length() > 1 ? 20 : 0.5;
  // A row's running values are stored and loaded again.
  constexpr double a_row = 4e-9;
  const double rows = Scan::cost(args).operations / static_cast<double>(Strips(args).width);
  return 40e-9 + std::max(contiguous_preferred * bytes / 45e9, rows * a_row);
}

const Rung<Scan> self{{.name = "columns",
                       .after = "look_back_threads",
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
