// SPDX-License-Identifier: Apache-2.0
// elementwise / strided
//
// Idea     Axes are merged where possible, and pieces of 4 KiB are gathered into L1 in the order of
//          the vector kernel. An operand already in that order, as most are, is read in place.
//          Short rows are gathered many at a time: a repeated row is expanded once for all pieces,
//          an element repeated along its row is a vector store.
// Changes  Against simd: supports every layout. Offsets are incremented from element to element,
//          not computed by divisions.
// Cost     As simd, plus one pass through L1 per strided operand.
// Limits   Every valid call; one thread. An f32 operand that is strided along z's rows uses 4 bytes
//          of each cache line per row; the other 60 serve later rows only if L2 holds one line per
//          element of a row.
// Source   NumPy's iterators ("nditer"), which also merge axes and buffer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/cpu/lines.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels.hpp"
#include "rung/ops/elementwise/op/walk.hpp"

namespace rung {
namespace elementwise_cpu {
namespace {

constexpr std::int64_t line = 64;
/// Bytes of one buffer: four buffers take a third of L1.
constexpr std::int64_t piece_bytes = 4096;

/// `rows` rows of `width` elements, contiguous in a buffer: the output of gather_rows().
struct Panel {
  std::int64_t rows, width;
  std::int64_t row_stride, stride;  // strides of the operand
};

/// Fills each row with one element, by one or a few vector stores of fixed length: `bytes` cover a
/// row, and the next row overwrites what exceeds it.
template <int bytes, class Word>
void spread_rows(const Word* from, Panel panel, Word* to) {
  typedef Word Vector __attribute__((vector_size(bytes)));
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    const Vector repeated = Vector{} + from[row * panel.row_stride];
    std::memcpy(to + row * panel.width, &repeated, bytes);
  }
}

/// Copies rows of at least `part` and at most 2 * `part` bytes, each by two overlapping copies of
/// `part` bytes.
template <int part, class Word>
void copy_rows(const Word* from, Panel panel, Word* to) {
  const std::int64_t last =
      panel.width - part / static_cast<std::int64_t>(sizeof(Word));  // start of the second copy
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    std::byte halves[2][part];
    std::memcpy(halves[0], from + row * panel.row_stride, part);
    std::memcpy(halves[1], from + row * panel.row_stride + last, part);
    std::memcpy(to + row * panel.width, halves[0], part);
    std::memcpy(to + row * panel.width + last, halves[1], part);
  }
}

/// Repeats one row: copies the rows written so far behind themselves, doubling each time.
template <class Word>
void repeat_row(const Word* from, Panel panel, Word* to) {
  const std::int64_t all = panel.rows * panel.width;
  for (std::int64_t i = 0; i < panel.width; ++i) to[i] = from[i * panel.stride];
  for (std::int64_t done = panel.width; done < all; done *= 2) {
    std::memcpy(to + done, to, static_cast<std::size_t>(std::min(done, all - done)) * sizeof(Word));
  }
}

/// Gathers a panel to `to`. May write up to a cache line beyond the panel.
template <class Word>
void gather_rows(const Word* from, Panel panel, Word* to) {
  const std::int64_t bytes = panel.width * static_cast<std::int64_t>(sizeof(Word));
  if (panel.row_stride == 0 && panel.rows > 1) return repeat_row(from, panel, to);
  if (panel.stride == 0 && panel.rows > 1) {
    if (bytes <= 16) return spread_rows<16>(from, panel, to);
    if (bytes <= 32) return spread_rows<32>(from, panel, to);
    if (bytes <= 64) return spread_rows<64>(from, panel, to);
  }
  if (panel.stride == 1 && panel.rows > 1) {
    if (bytes >= 64 && bytes <= 128) return copy_rows<64>(from, panel, to);
    if (bytes >= 32 && bytes < 64) return copy_rows<32>(from, panel, to);
    if (bytes >= 16 && bytes < 32) return copy_rows<16>(from, panel, to);
    if (bytes >= 8 && bytes < 16) return copy_rows<8>(from, panel, to);
  }
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    const Word* source = from + row * panel.row_stride;
    Word* target = to + row * panel.width;
    if (panel.stride == 0) {
      std::fill_n(target, panel.width, *source);
    } else if (panel.stride == 1) {
      std::copy_n(source, panel.width, target);
    } else {
      for (std::int64_t i = 0; i < panel.width; ++i) target[i] = source[i * panel.stride];
    }
  }
}
template <class Word>
void scatter_rows(const Word* from, Panel panel, Word* to) {
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    const Word* source = from + row * panel.width;
    Word* target = to + row * panel.row_stride;
    for (std::int64_t i = 0; i < panel.width; ++i) target[i * panel.stride] = source[i];
  }
}

/// Runs of elements to compute, with the operands' layout; one object serves all threads.
template <class Word>  // an unsigned integer of the elements' size: they are only moved
class Runs {
 public:
  Runs(const Elementwise::Args& args, bool streaming)
      : kernel_(find_kernel(args.function, args.z.dtype)),
        layout_(args.layout),
        alpha_(args.alpha),
        arity_(args.arity()),
        // Non-temporal stores gain nothing if z's elements straddle cache lines.
        streaming_(streaming && reinterpret_cast<std::uintptr_t>(args.z.data) % sizeof(Word) == 0) {
    base_[0] = static_cast<Word*>(args.z.data);
    for (int i = 0; i < 3; ++i) {
      // An unused operand is never accessed, but must be a pointer valid for arithmetic.
      const auto operand = static_cast<std::size_t>(i < arity_ ? i : 0);
      base_[i + 1] = static_cast<Word*>(const_cast<void*>(args.in[operand].data));
      if (args.in[operand].data == args.z.data) streaming_ = false;
    }
    flat_ = args.flat();
    for (int i = 0; i <= arity_; ++i) contiguous_[i] = dense(i);
    if (layout_.rank > 0) row_ = layout_.shape[layout_.rank - 1];
    for (int i = 0; i <= arity_; ++i) direct_ = direct_ && inner_stride(i) == 1;
  }

  /// Computes elements [begin, end) in the layout's order.
  void compute(std::int64_t begin, std::int64_t end) const {
    if (begin >= end) return;
    if (flat_) {
      kernel_(base_[1] + begin, base_[2] + begin, base_[3] + begin, base_[0] + begin, end - begin,
              alpha_, streaming_);
    } else {
      Buffers buffers;
      Walk<4> walk(layout_, begin);
      for (std::int64_t linear = begin; linear < end;) {
        linear +=
            row_ < piece_elements / 4
                ? short_rows(buffers, walk, linear, end - linear)
                : part_of_row(buffers, walk, linear, std::min(end - linear, walk.left_in_row()));
      }
    }
    if (streaming_) cpu::end_streams();
  }

 private:
  static constexpr std::int64_t piece_elements =
      piece_bytes / static_cast<std::int64_t>(sizeof(Word));

  static constexpr std::int64_t line_elements = line / static_cast<std::int64_t>(sizeof(Word));

  struct Buffers {
    alignas(line) Word of[4][piece_elements + line_elements];
    const Word* filled_from[4] = {};  // detects repeated operands, which are gathered once
    std::int64_t filled[4] = {};
  };

  /// Computes the next piece of a row of which `left` elements remain. Returns its length. Operands
  /// of stride 1 are not copied.
  std::int64_t part_of_row(Buffers& buffers, Walk<4>& walk, std::int64_t linear,
                           std::int64_t left) const {
    std::int64_t count = left;
    if (!direct_ && left > piece_elements) {  // equal pieces, of whole lines
      const std::int64_t pieces = (left + piece_elements - 1) / piece_elements;
      count = (left / pieces + line_elements) / line_elements * line_elements;
      count = std::min(count, piece_elements);
    }
    const std::int64_t z_stride = inner_stride(0);
    Word* z = contiguous_[0] ? base_[0] + linear : z_stride == 1 ? base_[0] + walk.at[0] : nullptr;
    if (streaming_ && z != nullptr) {  // align piece ends to z's cache lines
      const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(z + count) %
                                                  static_cast<std::uintptr_t>(line)) /
                        static_cast<std::int64_t>(sizeof(Word));
      if (past < count && count < left) count -= past;
    }
    const auto operand = [&](int i) -> const Word* {
      if (i > arity_) return base_[1];
      if (contiguous_[i]) return base_[i] + linear;
      const Word* from = base_[i] + walk.at[i];
      const std::int64_t stride = inner_stride(i);
      Word* buffer = buffers.of[i];
      if (stride == 1) return from;
      if (stride == 0 && buffers.filled_from[i] == from && buffers.filled[i] >= count) {
        return buffer;
      }
      gather_rows(from, {1, count, 0, stride}, buffer);
      buffers.filled_from[i] = stride == 0 ? from : nullptr;
      buffers.filled[i] = count;
      return buffer;
    };
    Word* out = z != nullptr ? z : buffers.of[0];
    kernel_(operand(1), operand(2), operand(3), out, count, alpha_, z != nullptr && streaming_);
    if (z == nullptr) scatter_rows(out, {1, count, 0, z_stride}, base_[0] + walk.at[0]);
    walk.advance(count);
    return count;
  }

  /// Computes the next rows: as many as fill a piece, or the rest of a partial row. Returns the
  /// number of elements.
  std::int64_t short_rows(Buffers& buffers, Walk<4>& walk, std::int64_t linear,
                          std::int64_t most) const {
    const bool begun = walk.left_in_row() < row_;
    std::int64_t rows = piece_elements / row_;
    if (rows >= line_elements) rows -= rows % line_elements;  // whole vectors, whole lines
    const std::int64_t count = std::min(most, begun ? walk.left_in_row() : rows * row_);
    const auto operand = [&](int i) -> const Word* {
      if (i > arity_) return base_[1];
      if (contiguous_[i]) return base_[i] + linear;
      Word* buffer = buffers.of[i];
      // A single panel that starts at the last piece's address, such as a repeated row, is reused.
      const Word* from = base_[i] + walk.at[i];
      const bool one_panel = !begun && walk.rows_left() * row_ >= count;
      if (one_panel && buffers.filled_from[i] == from && buffers.filled[i] >= count) return buffer;
      for_each_panel(walk, count, i, [&](Panel panel, std::int64_t at, std::int64_t done) {
        gather_rows(base_[i] + at, panel, buffer + done);
      });
      buffers.filled_from[i] = one_panel ? from : nullptr;
      buffers.filled[i] = count;
      return buffer;
    };
    Word* out = contiguous_[0] ? base_[0] + linear : buffers.of[0];
    kernel_(operand(1), operand(2), operand(3), out, count, alpha_, contiguous_[0] && streaming_);
    walk = for_each_panel(walk, count, 0, [&](Panel panel, std::int64_t at, std::int64_t done) {
      if (!contiguous_[0]) scatter_rows(out + done, panel, base_[0] + at);
    });
    return count;
  }

  /// Calls each(panel, offset in the tensor, elements before it) for the next `count` elements of a
  /// tensor. Returns the position after them.
  template <class Each>
  Walk<4> for_each_panel(Walk<4> walk, std::int64_t count, int tensor, Each&& each) const {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t left = count - done;
      const std::int64_t width = std::min(walk.left_in_row(), left);
      const bool whole = width == row_;
      const std::int64_t rows = whole ? std::min(left / row_, walk.rows_left()) : 1;
      each(Panel{rows, width, row_stride(tensor), inner_stride(tensor)}, walk.at[tensor], done);
      whole ? walk.advance_rows(rows) : walk.advance(width);
      done += rows * width;
    }
    return walk;
  }

  /// Returns whether element i of the layout's order is the tensor's i-th in memory, even if other
  /// tensors prevent merging its axes.
  [[nodiscard]] bool dense(int tensor) const {
    std::int64_t stride = 1;
    for (int axis = layout_.rank - 1; axis >= 0; --axis) {
      if (layout_.strides[tensor][axis] != stride) return false;
      stride *= layout_.shape[axis];
    }
    return true;
  }
  [[nodiscard]] std::int64_t row_stride(int tensor) const {
    return layout_.rank < 2 ? 0 : layout_.strides[tensor][layout_.rank - 2];
  }
  [[nodiscard]] std::int64_t inner_stride(int tensor) const {
    return layout_.rank == 0 ? 1 : layout_.strides[tensor][layout_.rank - 1];
  }

  Kernel kernel_;
  Collapsed<4> layout_;
  double alpha_;
  int arity_;
  bool streaming_;
  bool flat_;
  bool direct_ = true;    // all operands are dense along rows
  std::int64_t row_ = 1;  // elements per row
  bool contiguous_[4] = {};
  Word* base_[4];
};

}  // namespace

void strided(const Elementwise::Args& args, cpu::Range elements, bool streaming) {
  const auto run = [&]<class Word>(Word) {
    Runs<Word>(args, streaming).compute(elements.begin, elements.end);
  };
  switch (size_of(args.z.dtype)) {
    case 1:
      return run(std::uint8_t{});
    case 2:
      return run(std::uint16_t{});
    case 4:
      return run(std::uint32_t{});
    default:
      return run(std::uint64_t{});
  }
}

}  // namespace elementwise_cpu

namespace {

void run(const Elementwise::Args& args, Context&) {
  elementwise_cpu::strided(args, {0, args.size()}, false);
}

const Rung<Elementwise> self{
    {.name = "strided", .step = 30, .after = "simd", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
