// SPDX-License-Identifier: Apache-2.0
// elementwise: from tensors of any strides to the runs of neighbouring elements that the vector
// kernels take. Elements are counted in the order of Elementwise::Args::layout; a range of them is
// cut into pieces that fit in L1, and of each piece an operand is used where it lies if it can be,
// else gathered into a buffer first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/ops/elementwise/cpu/detail/kernels.hpp"
#include "rung/ops/elementwise/op/walk.hpp"

namespace rung::elementwise_cpu {

inline constexpr std::int64_t line = 64;
/// Of one buffer: four of them take a third of L1.
inline constexpr std::int64_t piece_bytes = 4096;

template <class Word>
void gather(const Word* from, std::int64_t stride, std::int64_t count, Word* to) {
  if (stride == 0) {
    std::fill_n(to, count, *from);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}
template <class Word>
void scatter(const Word* from, Word* to, std::int64_t stride, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i * stride] = from[i];
}

/// A call as the engine needs it; one object serves all threads.
template <class Word>  // an unsigned integer of the elements' size: they are only moved
class Runs {
 public:
  Runs(const Elementwise::Args& args, bool streaming)
      : kernel_(find_kernel(args.function, args.z.dtype)),
        layout_(args.layout),
        alpha_(args.alpha),
        arity_(args.arity()),
        // Where z's elements straddle lines, or are read before, nothing is won.
        streaming_(streaming && reinterpret_cast<std::uintptr_t>(args.z.data) % sizeof(Word) == 0) {
    base_[0] = static_cast<Word*>(args.z.data);
    for (int i = 0; i < 3; ++i) {
      // One that is not read is never touched, but must be a pointer that arithmetic is allowed on.
      const auto operand = static_cast<std::size_t>(i < arity_ ? i : 0);
      base_[i + 1] = static_cast<Word*>(const_cast<void*>(args.in[operand].data));
      if (args.in[operand].data == args.z.data) streaming_ = false;
    }
    flat_ = args.flat();
    contiguous_[0] = layout_.is_contiguous<0>();
    contiguous_[1] = layout_.is_contiguous<1>();
    contiguous_[2] = layout_.is_contiguous<2>();
    contiguous_[3] = layout_.is_contiguous<3>();
  }

  /// Elements [begin, end) in the layout's order.
  void compute(std::int64_t begin, std::int64_t end) const {
    if (begin >= end) return;
    if (flat_) {
      kernel_(base_[1] + begin, base_[2] + begin, base_[3] + begin, base_[0] + begin, end - begin,
              alpha_, streaming_);
    } else {
      Buffers buffers;
      Walk<4> walk(layout_, begin);
      for (std::int64_t linear = begin; linear < end;) {
        linear += piece(buffers, walk, linear, end - linear);
      }
    }
    if (streaming_) stream_end();
  }

 private:
  static constexpr std::int64_t piece_elements =
      piece_bytes / static_cast<std::int64_t>(sizeof(Word));

  struct Buffers {
    alignas(line) Word of[4][piece_elements];
    const Word* filled_from[4] = {};  // an operand that repeats one element is gathered once
    std::int64_t filled[4] = {};
  };

  /// Computes the next piece and moves `walk` behind it; its length.
  std::int64_t piece(Buffers& buffers, Walk<4>& walk, std::int64_t linear,
                     std::int64_t most) const {
    const std::int64_t row = walk.left_in_row();
    // Long rows: pieces of one row, so that operands without a stride need no copy. Short rows
    // are gathered many at a time.
    const bool one_row = row >= std::min(most, piece_elements / 4);
    std::int64_t count = std::min(most, piece_elements);
    if (one_row) count = std::min(count, row);
    if (streaming_ && (one_row || contiguous_[0])) {
      // Pieces end where z's lines do.
      const Word* z = base_[0] + (contiguous_[0] ? linear : walk.at[0]);
      const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(z + count) %
                                                  static_cast<std::uintptr_t>(line)) /
                        static_cast<std::int64_t>(sizeof(Word));
      if (past < count && count < (one_row ? std::min(most, row) : most)) count -= past;
    }
    const Word* in[3];
    for (int i = 1; i <= 3; ++i) {
      in[i - 1] = i > arity_ ? base_[1] : operand(i, buffers, walk, linear, count, one_row);
    }
    const std::int64_t z_stride = inner_stride(0);
    Word* z = contiguous_[0]             ? base_[0] + linear
              : one_row && z_stride == 1 ? base_[0] + walk.at[0]
                                         : nullptr;
    Word* out = z != nullptr ? z : buffers.of[0];
    kernel_(in[0], in[1], in[2], out, count, alpha_, z != nullptr && streaming_);
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t n = std::min(count - done, walk.left_in_row());
      if (z == nullptr) scatter(out + done, base_[0] + walk.at[0], z_stride, n);
      walk.advance(n);
      done += n;
    }
    return count;
  }

  /// Where the kernel finds `count` contiguous elements of an operand.
  const Word* operand(int i, Buffers& buffers, const Walk<4>& walk, std::int64_t linear,
                      std::int64_t count, bool one_row) const {
    if (contiguous_[i]) return base_[i] + linear;
    const std::int64_t stride = inner_stride(i);
    Word* buffer = buffers.of[i];
    if (!one_row) {
      buffers.filled_from[i] = nullptr;
      Walk<4> reader = walk;
      for (std::int64_t done = 0; done < count;) {
        const std::int64_t n = std::min(count - done, reader.left_in_row());
        gather(base_[i] + reader.at[i], stride, n, buffer + done);
        reader.advance(n);
        done += n;
      }
      return buffer;
    }
    const Word* from = base_[i] + walk.at[i];
    if (stride == 1) return from;
    if (stride == 0 && buffers.filled_from[i] == from && buffers.filled[i] >= count) return buffer;
    gather(from, stride, count, buffer);
    buffers.filled_from[i] = stride == 0 ? from : nullptr;
    buffers.filled[i] = count;
    return buffer;
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
  bool contiguous_[4];
  Word* base_[4];
};

}  // namespace rung::elementwise_cpu
