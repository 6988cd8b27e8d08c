// SPDX-License-Identifier: Apache-2.0
// scan / serial, any call
//
// Idea     The same loop for every operation, type and stride: the operation is a template
//          argument; a segment's end leaves the loop and starts a new one.
// Changes  Against serial: exclusive scans, segments, min, max and product. There is no setup per
//          line, so it is the fastest rung for lines of a few elements.
// Cost     As serial.
// Limits   f16 is widened and rounded element by element, in software.
#include "rung/cpu/piece_work.hpp"
#include "rung/ops/scan/cpu/detail/heads.hpp"
#include "rung/ops/scan/op/operations.hpp"

namespace rung {
namespace {

template <class T, class Combine>
void scan_lines(const Scan::Args& args, const cpu::BitMap& heads) {
  using State = ScanState<T>;
  using Widened = std::conditional_t<std::is_class_v<T>, float, T>;
  const Combine combine;
  const State identity = scan_identity<T>(args.operation);
  const std::int64_t n = args.length();
  const std::int64_t x_stride = args.x_stride();
  const std::int64_t y_stride = args.y_stride();
  const bool exclusive = args.exclusive;
  for (std::int64_t line = 0; line < args.lines.size(); ++line) {
    const T* x = static_cast<const T*>(args.x.data) + args.lines.offset<0>(line);
    T* y = static_cast<T*>(args.y.data) + args.lines.offset<1>(line);
    for (std::int64_t begin = 0; begin < n;) {
      const std::int64_t end = heads.next(begin + 1, n);
      State running = identity;
      for (std::int64_t i = begin; i < end; ++i) {
        const State next =
            combine(running, static_cast<State>(static_cast<Widened>(x[i * x_stride])));
        y[i * y_stride] = static_cast<T>(exclusive ? running : next);
        running = next;
      }
      begin = end;
    }
  }
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  auto* words = static_cast<std::uint64_t*>(
      context.workspace(scan_cpu::head_words(args) * sizeof(std::uint64_t)));
  const cpu::BitMap heads = scan_cpu::heads_of(args, words);
  visit_scanned(args.x.dtype, [&]<class T>() {
    visit_scan(args.operation, [&]<class Combine>() { scan_lines<T, Combine>(args, heads); });
  });
}

// Latency-bound: each element waits for the previous addition, or minimum that propagates NaN.
Work work(const Scan::Args& args, const Context&) {
  const bool extremum =
      args.operation == ScanOperation::min || args.operation == ScanOperation::max;
  const std::int64_t pieces =
      args.lines.size() * (1 + (args.has_segments() ? args.offsets.size() : 0));
  return cpu::piece_work(pieces, Scan::cost(args).operations, 1,
                         args.x.dtype == DType::f16  ? "f16"
                         : is_floating(args.x.dtype) ? extremum ? "extremum" : ""
                         : extremum                  ? "extremum of whole numbers"
                                                     : "whole numbers");
}

const Rung<Scan> self{{.name = "serial_general", .after = "serial", .work = work, .run = run}};
}  // namespace
}  // namespace rung
