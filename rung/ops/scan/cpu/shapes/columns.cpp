// SPDX-License-Identifier: Apache-2.0
// scan / columns
//
// Idea     Along an axis that is not the last, neighboring lines are adjacent: a vector holds one
//          element of each line and is added to their running values. A strip of lines advances row
//          by row, with its running values in L1.
// Changes  Against look_back_threads: no gather and no scan within a vector; threads share strips
//          of lines, not the chunks of a line.
// Cost     x read and y written once, in runs as long as a strip is wide.
// Limits   Adjacent lines, at least 8 bytes per row. Few, long lines occupy few threads, and each
//          row of less than a vector depends on the previous one.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/piece_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/scan/cpu/detail/chunks.hpp"
#include "rung/ops/scan/cpu/detail/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
namespace {

/// Scans `width` adjacent lines of `rows` elements; rows are x_step and y_step elements apart.
/// `values` has room for width + 64 running values.
template <class T, class Operation>
void columns(const void* from, std::int64_t x_step, void* to, std::int64_t y_step,
             std::int64_t rows, std::int64_t width, void* values, bool exclusive,
             [[maybe_unused]] bool stream) {
  using L = Lane<T>;
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  L* running = static_cast<L*>(values);
  std::fill_n(running, width + 64, identity_of<T, Operation>);  // padded to whole vectors
  for (std::int64_t row = 0; row < rows; ++row, x += x_step, y += y_step) {
    if constexpr (!has_vectors<T, Operation>) {
      for (std::int64_t j = 0; j < width; ++j) {
        const L after = Operation()(running[j], static_cast<L>(x[j]));
        y[j] = static_cast<T>(exclusive ? running[j] : after);
        running[j] = after;
      }
    } else {
#if HWY_MAX_BYTES > 16
      const hn::ScalableTag<L> d;
      using V = hn::Vec<decltype(d)>;
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
      std::int64_t j = 0;
      const auto whole_vectors = [&]<bool past>() HWY_ATTR {
        for (; j + lanes <= width; j += lanes) {
          if (stream) __builtin_prefetch(x + x_step + j, 0, 0);
          const V before = hn::LoadU(d, running + j);
          const V after = combine(Operation(), d, before, load_as(d, x + j));
          put<past>(exclusive ? before : after, d, y + j);
          hn::StoreU(after, d, running + j);
        }
      };
      const bool past = stream && reinterpret_cast<std::uintptr_t>(y) % HWY_MAX_BYTES == 0;
      past ? whole_vectors.template operator()<true>() : whole_vectors.template operator()<false>();
      if (j == width) continue;
      const auto rest = static_cast<std::size_t>(width - j);
      const V before = hn::LoadU(d, running + j);
      const V after = combine(Operation(), d, before, load_as_n(d, x + j, rest));
      store_as_n(exclusive ? before : after, d, y + j, rest);
      hn::StoreU(after, d, running + j);
#endif
    }
  }
}

auto columns_of(DType dtype, ScanOperation operation) {
  return visit_scanned(dtype, [&]<class T>() {
    return visit_scan(operation, []<class Operation>() { return &columns<T, Operation>; });
  });
}

}  // namespace
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::scan_cpu {
namespace {
HWY_EXPORT(columns_of);

constexpr std::int64_t page = 4096;

/// The innermost of the other axes, contiguous in x and y, and its division into strips.
struct Strips {
  std::int64_t width = 0;  // elements of the axis
  std::int64_t strip;      // elements per strip
  std::int64_t strips;     // strips per axis
  std::int64_t count;      // all strips

  explicit Strips(const Scan::Args& args) {
    const Collapsed<2>& lines = args.lines;
    const int last = lines.rank - 1;
    if (lines.rank == 0 || lines.strides[0][last] != 1 || lines.strides[1][last] != 1) return;
    width = lines.shape[last];
    // 4 KiB per row: a page for the prefetchers, and all running values in L1.
    strip = page / static_cast<std::int64_t>(size_of(args.x.dtype));
    strips = (width + strip - 1) / strip;
    count = lines.size() / width * strips;
  }
};

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  const Strips strips(args);
  const auto scan_strip = HWY_DYNAMIC_DISPATCH(columns_of)(args.x.dtype, args.operation);
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  const int threads = useful_threads(args, context);
  // Running values of at most 8 bytes each, padded to whole vectors, placed half a page from y
  // modulo the page size: 4K aliasing would stall loads of x behind stores to running values.
  const std::int64_t running_bytes = (strips.strip + 64) * 8 + page;
  const std::size_t place = (reinterpret_cast<std::uintptr_t>(args.y.data) + page / 2) % page;
  const bool stream = is_streamed(args);
  auto* words = static_cast<std::uint64_t*>(
      context.workspace(head_words(args) * sizeof(std::uint64_t) +
                        static_cast<std::size_t>(threads * running_bytes)));
  const cpu::BitMap heads = heads_of(args, words);
  auto* memory = reinterpret_cast<std::byte*>(words + head_words(args));
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
        scan_strip(x + begin * args.x_stride() * size, args.x_stride(),
                   y + begin * args.y_stride() * size, args.y_stride(), end - begin, width, running,
                   args.exclusive, stream);
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

Work work(const Scan::Args& args, const Context& context) {
  return cpu::piece_work(Strips(args).count * args.length(), args.y.size(),
                         useful_threads(args, context), is_streamed(args) ? "streamed" : "");
}

const Rung<Scan> self{{.name = "columns",
                       .after = "look_back_threads",
                       .supports = supports,
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung::scan_cpu
#endif
