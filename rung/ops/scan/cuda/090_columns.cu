// SPDX-License-Identifier: Apache-2.0
// scan / columns
//
// Idea     an axis that is not the last: lines lie side by side, so a thread takes 16 bytes of them
//          and walks down. Neighbouring threads read neighbouring packs, and nothing is exchanged.
//          Where the lines are too few to fill the machine, they are cut across as well: totals of
//          the pieces, a scan of those, then the pieces.
// Changes  against decoupled_look_back: wide loads where that moves single elements.
// Cost     each element read and written once; x twice where lines are cut.
// Limits   f32, f64, f16, bf16, u8 and i32; lines that lie side by side in both tensors.
// Tried    H200, f32, 16384 x 16384 along axis 0, one row at a time: 1697 GB/s.
// Source   -
#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/columns.hpp"

namespace rung {
namespace {
using namespace scan_cuda;
using namespace scan_cuda::columns;

Cut cut_of(const Scan::Args& args, const Context& context) {
  const std::int64_t pack = larger<std::int64_t>(16 / size_of(args.x.dtype), 1);
  Cut cut{};
  cut.width = args.lines.shape[args.lines.rank - 1];
  cut.strips = ceil_div(cut.width, pack);
  cut.outer = args.lines.size() / cut.width;
  // 512 threads a multiprocessor, each with a load under way; pieces of 64 rows at least.
  const std::int64_t wanted = std::int64_t{512} * context.info().multiprocessors;
  const std::int64_t most = larger<std::int64_t>(args.length() / 64, 1);
  cut.pieces = clamped<std::int64_t>(wanted / (cut.outer * cut.strips), 1, most);
  cut.rows = ceil_div(args.length(), cut.pieces);
  cut.pieces = ceil_div(args.length(), cut.rows);
  return cut;
}

void run(const Scan::Args& args, Context& context) {
  visit_types(args.x.dtype, [&]<class T>() {
    using State = Flagged<ScanState<T>>;
    Lines<T> lines = lines_of<T>(args);
    const Segmented<T> policy = segmented_policy<T>(args);
    const Cut cut = cut_of(args, context);
    const std::int64_t slots = cut.pieces > 1 ? cut.count() * pack_size<T> : 0;
    const auto slot_bytes = static_cast<std::size_t>(round_up(slots, 16)) * sizeof(State);
    auto* memory = static_cast<std::byte*>(context.workspace(
        slot_bytes + static_cast<std::size_t>(head_words(args)) * sizeof(unsigned)));
    auto* totals = slots > 0 ? reinterpret_cast<State*>(memory) : nullptr;
    add_heads(context, args, reinterpret_cast<unsigned*>(memory + slot_bytes), lines);
    const auto blocks = [](std::int64_t work) {
      return smaller<std::int64_t>(ceil_div(work, threads), 0x7fffffff);
    };
    if (slots > 0) {
      launch(context, {.grid = blocks(cut.count()), .block = threads}, scan_column_totals<T>, lines,
             policy, cut, totals);
      launch(context, {.grid = blocks(cut.outer * cut.strips * pack_size<T>), .block = threads},
             scan_column_carries<T>, policy, cut, totals);
    }
    launch(context, {.grid = blocks(cut.count()), .block = threads}, scan_columns<T>, lines, policy,
           cut, totals, args.exclusive);
  });
}

double estimate(const Scan::Args& args, const Context& context) {
  const Cut cut = cut_of(args, context);
  const double bytes = Scan::cost(args).bytes * (cut.pieces > 1 ? 1.5 : 1.0);
  const double busy =
      smaller(1.0, static_cast<double>(cut.count()) / (256.0 * context.info().multiprocessors));
  // Narrow strips waste most of each sector.
  const double narrow = larger(1.0, 8.0 / static_cast<double>(cut.width));
  const double fraction = size_of(args.x.dtype) == 1 ? 0.35 : 0.65;
  return 4e-6 * (cut.pieces > 1 ? 3 : 1) +
         narrow * bytes / (fraction * busy * nominal_rates(context).bytes_per_second);
}

const Rung<Scan> self{{.name = "columns",
                       .step = 90,
                       .after = "decoupled_look_back",
                       .backend = device_backend,
                       .supports = supports,
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
