// SPDX-License-Identifier: Apache-2.0
// Epilogue of strip_boxes.hpp for more than a factor alpha: a warp adds, activates and rounds sums
// in the registers where wgmma leaves them, and TMA moves boxes of 16 rows by 128 bytes both ways:
// it loads C (for beta) or the residual into the box from which it then stores C.
//
//   BoxTurn turn;                                 // per warp, for all of its tiles
//   BoxFinish<Columns, T> finish(layout.strips[warp], layout.arrivals[warp], turn);
//   finish.begin(job, place);                     // starts loading the first boxes
//   ...                                           // main loop of the tile
//   finish.write(job, place, [&](int i) { return sums[i]; });
//
// Compute capability 9.0.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/strip_boxes.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Barriers on which a warp waits for its boxes; a member of a shared<Layout>() struct, one per
/// warp.
struct BoxArrivals {
  ptx::MemoryBarrier of[2];

  /// Initializes the barriers. One thread calls it; a fence and a block barrier must follow.
  __device__ __forceinline__ void init() {
    for (auto& barrier : of) ptx::mbarrier_init(barrier, 1);
  }
};

/// The 16 columns of a box that are finished together: a lane holds 8 of their elements, enough to
/// keep an activation busy and as many as registers allow. These 8 are in rows lane / 4 and
/// lane / 4 + 8 and, of each eight columns, in columns 2 (lane % 4) and 2 (lane % 4) + 1, in the
/// order of the sums. Relative to the first, element i is in row 8 (i / 2 % 2) and in column
/// 8 (i / 4) + i % 2.
template <class Out>
struct BoxPart {
  static constexpr int columns = 16;
  static constexpr int count = columns / 2;
  static constexpr int of_box = strip_box<Out>[2] / columns;  // per box: 4 for 16-bit types, else 2
  using Elements = Pack<float, count>;

  /// Loads this lane's elements of a part. All lanes must call it, and the functions below.
  static __device__ __forceinline__ void load(StripStage& box, int part, int lane, Elements& to) {
    if constexpr (sizeof(Out) == 2) {
      std::uint32_t words[4];
      ptx::load_matrix<4>(words, row_of(box, part, lane));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        Pack<Out, 2> pair;
        pair[0].bits = static_cast<std::uint16_t>(words[i]);
        pair[1].bits = static_cast<std::uint16_t>(words[i] >> 16);
        to[2 * i] = convert<float>(pair[0]);
        to[2 * i + 1] = convert<float>(pair[1]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < count; i += 2) {
        const auto pair = load_wide<2>(reinterpret_cast<const float*>(pair_of(box, part, lane, i)));
        to[i] = pair[0];
        to[i + 1] = pair[1];
      }
    }
  }
  static __device__ __forceinline__ void store(StripStage& box, int part, int lane,
                                               const Elements& from) {
    if constexpr (sizeof(Out) == 2) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Pack<Out, 2> pair = convert<Out>(Pack<float, 2>{{from[2 * i], from[2 * i + 1]}});
        words[i] = std::uint32_t{pair[0].bits} | std::uint32_t{pair[1].bits} << 16;
      }
      ptx::store_matrix<4>(row_of(box, part, lane), words);
    } else {
#pragma unroll
      for (int i = 0; i < count; i += 2) {
        store_wide(reinterpret_cast<float*>(pair_of(box, part, lane, i)),
                   Pack<float, 2>{{from[i], from[i + 1]}});
      }
    }
  }

 private:
  /// Returns the row address that lane 8 i + r passes to ldmatrix and stmatrix: row r of 8 x 8
  /// matrix i of 16 x 16 elements.
  static __device__ __forceinline__ unsigned char* row_of(StripStage& box, int part,
                                                         int lane) {
    const int chunk = 2 * part + lane / 16;
    return box.bytes + swizzled<Swizzle::bytes_128>(lane % 16 * 128 + chunk * 16);
  }
  /// Returns the address of two adjacent 4-byte elements.
  static __device__ __forceinline__ unsigned char* pair_of(StripStage& box, int part,
                                                          int lane, int i) {
    const int row = lane / 4 + 8 * (i / 2 % 2);
    const int column = columns * part + 8 * (i / 4) + 2 * (lane % 4);
    return box.bytes + swizzled<Swizzle::bytes_128>(row * 128 + column * 4);
  }
};

/// Index of a warp's next box, and the parities of its barriers. One object serves all tiles of a
/// warp.
struct BoxTurn {
  int box = 0;
  unsigned parity = 0;  // one bit per box
};

/// Position in C of a warp's rows of a tile.
struct StripPlace {
  int matrix, row, column;
};

/// Keeps the enclosing branch a branch: the compiler must not predicate its instructions.
__device__ __forceinline__ void keep_branch() {
#if defined(__CUDACC__)
  asm volatile("");
#endif
}

/// Vector bias, with one value per row or per column: the terms that a lane adds to a box, in
/// BoxPart's element order. All loads are in flight together.
template <int Count>
class BoxBias {
  static constexpr int columns = Count / 2;
  float values_[columns] = {};  // one per column; per row: for the first and the second row
  bool per_row_ = false;

 public:
  template <class P>
  __device__ __forceinline__ BoxBias(const P& p, const StripPlace& place, int lane) {
    if (p.bias.data == nullptr) return;
    // Indices beyond the end are clamped; their elements are not stored.
    const auto at = [&](std::int64_t row, std::int64_t column) {
      return convert<float>(
          p.bias(place.matrix, smaller(row, p.m() - 1), smaller(column, p.n() - 1)));
    };
    per_row_ = p.bias.strides[2] == 0;
    if (per_row_) {
#pragma unroll
      for (int i = 0; i < 2; ++i) values_[i] = at(place.row + lane / 4 + 8 * i, 0);
      return;
    }
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      values_[i] = at(0, place.column + i / 2 * 8 + 2 * (lane % 4) + i % 2);
    }
  }
  [[nodiscard]] __device__ __forceinline__ float operator[](int i) const {
    return per_row_ ? values_[i / 2 % 2] : values_[i / 4 * 2 + i % 2];
  }
};

/// Epilogue of one tile, executed by a warp.
template <int Columns, class T>
class BoxFinish {
  StripBoxes& boxes_;
  BoxArrivals& arrivals_;
  BoxTurn& turn_;

 public:
  __device__ __forceinline__ BoxFinish(StripBoxes& boxes, BoxArrivals& arrivals, BoxTurn& turn)
      : boxes_(boxes), arrivals_(arrivals), turn_(turn) {}

  /// Starts loading the first boxes of the added matrix. All lanes must call it.
  template <class Job>
  __device__ __forceinline__ void begin(const Job& job, const StripPlace& place) {
    if (!job.adds || place.row >= job.finish.p.m() || threadIdx.x % 32 != 0) return;
    ptx::bulk_wait_read<0>();  // the stores of the previous tile have read both boxes
    const int width = 128 / job.out_bytes();
    for (int box = 0; box < 2; ++box) {
      if (box * width < Columns && place.column + box * width < job.finish.p.n()) {
        fetch(job, turn_.box ^ box, place, box * width);
      }
    }
  }

  /// Writes a warp's 16 x Columns elements of C with the epilogue that C needs. All lanes must call
  /// it.
  template <class Job, class Sums>
  __device__ __forceinline__ void write(const Job& job, const StripPlace& given,
                                        const Sums& sums) {
    // The opaque zero keeps addresses derived from the position out of registers during the
    // products.
    const int zero = zero_anew();
    const StripPlace place{given.matrix + zero, given.row + zero, given.column + zero};
    if (!job.finishes_boxes) {
      write_strip<Columns, T>(job, boxes_, turn_.box, place.matrix, place.row, place.column, sums);
      return;
    }
    if constexpr (sizeof(T) == 2) {
      if (job.finish.narrow) return write_boxes<T>(job, place, sums);
    }
    write_boxes<float>(job, place, sums);
  }

 private:
  /// Starts loading a box, which must be free. Lane 0 calls it.
  template <class Job>
  __device__ __forceinline__ void fetch(const Job& job, int box, const StripPlace& place,
                                        int columns) {
    ptx::mbarrier_arrive_expect(arrivals_.of[box], sizeof(StripStage));
    ptx::tensor_load(boxes_.box[box].bytes, job.addend,
                     {place.matrix, place.row, place.column + columns}, arrivals_.of[box]);
  }

  template <class Out, class Job, class Sums>
  __device__ __forceinline__ void write_boxes(const Job& job, const StripPlace& place,
                                              const Sums& sums) {
    using Part = BoxPart<Out>;
    constexpr int parts = Part::of_box;
    const auto p = with_output<Out>(job.finish.p);
    const bool leads = threadIdx.x % 32 == 0;
    if (place.row >= p.m()) return;
    // Boxes are filled whole: TMA clips stores at the edges of C.
    constexpr int width = parts * Part::columns;
    const auto columns = static_cast<int>(
        smaller<std::int64_t>((p.n() - place.column + width - 1) / width * width, Columns));
    // A rolled loop over pairs of parts: unrolled, each iteration would have its own copy of every
    // activation.
    constexpr int step = 2 * Part::columns;
    constexpr int count = 2 * Part::count;
#pragma unroll 1
    for (int first = 0; first < columns; first += step) {
      const int lane = lane_anew();
      const int zero = zero_anew();
      const StripPlace at{place.matrix + zero, place.row + zero, place.column + first};
      const int first_part = first / Part::columns % parts;
      StripStage& box = boxes_.box[turn_.box];
      if (first_part == 0 && job.adds) {
        ptx::mbarrier_wait(arrivals_.of[turn_.box], turn_.parity >> turn_.box & 1);
        turn_.parity ^= 1U << turn_.box;
      }
      if (first_part == 0 && leads) {
        if (!job.adds) {
          ptx::bulk_wait_read<1>();  // the second-to-last store has read this box
        } else if (first > 0 && first + width < columns) {
          ptx::bulk_wait_read<0>();  // the last store has read the other box
          fetch(job, turn_.box ^ 1, place, first + width);
        }
      }
      __syncwarp();  // the box may be written
      const BoxBias<count> bias(p, at, lane);
      float values[count];
#pragma unroll
      for (int candidate = 0; candidate < Columns / step; ++candidate) {
        if (candidate * step != first) continue;
        keep_branch();
#pragma unroll
        for (int i = 0; i < count; ++i) values[i] = sums(candidate * count + i);
      }
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        typename Part::Elements added = {};
        if (job.adds) Part::load(box, first_part + part, lane, added);
        typename Part::Elements of_part;
#pragma unroll
        for (int i = 0; i < Part::count; ++i) of_part[i] = p.alpha * values[part * Part::count + i];
        if (p.beta != 0) {
#pragma unroll
          for (int i = 0; i < Part::count; ++i) of_part[i] += p.beta * added[i];
        }
        if (p.bias.data != nullptr) {
#pragma unroll
          for (int i = 0; i < Part::count; ++i) of_part[i] += bias[part * Part::count + i];
        }
        activate_all<Out>(p.activation, of_part);
        if (p.residual.data != nullptr) {
#pragma unroll
          for (int i = 0; i < Part::count; ++i) of_part[i] += added[i];
        }
        __syncwarp();  // all lanes have read the part
        Part::store(box, first_part + part, lane, of_part);
      }
      if (first_part + 2 < parts) continue;
      ptx::fence_async_proxy();
      __syncwarp();
      if (leads) {
        const int column = at.column - first_part * Part::columns;
        ptx::tensor_store(job.c, {at.matrix, at.row, column}, box.bytes);
        ptx::bulk_commit();
      }
      turn_.box ^= 1;
    }
  }
};

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
