// SPDX-License-Identifier: Apache-2.0
// Copies boxes of tensors row by row. Elements outside the tensor are read as zero, and are not
// written except within 16-byte pieces, as in hardware. Undocumented rules were measured on an
// H200.
#include "rung/simt/tensor_copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rung/simt/address.hpp"
#include "rung/simt/copy_engine.hpp"
#include "rung/simt/matrix.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr std::size_t copy_chunk_bytes = 16;

std::uint32_t row_bytes(const TensorMapFields& map) {
  return std::uint32_t{map.box[map.rank - 1]} * map.element_bytes;
}

/// Calls f(offset in the dense box, byte offset in the tensor, first, last) for each row of the box
/// along the last axis; elements [first, last) are in bounds.
template <class F>
void for_each_row(const CopyShape& shape, F f) {
  const TensorMapFields& map = shape.map;
  const int inner = map.rank - 1;
  const std::int64_t first =
      std::clamp<std::int64_t>(-std::int64_t{shape.at[inner]}, 0, map.box[inner]);
  const std::int64_t last =
      std::clamp<std::int64_t>(map.shape[inner] - shape.at[inner], first, map.box[inner]);
  int index[5] = {};
  const std::uint32_t step = row_bytes(map);
  for (std::size_t offset = 0; offset < shape.bytes; offset += step) {
    bool exists = true;
    std::int64_t byte = std::int64_t{shape.at[inner]} * map.element_bytes;
    for (int axis = 0; axis < inner; ++axis) {
      const std::int64_t at = std::int64_t{shape.at[axis]} + index[axis];
      exists &= at >= 0 && at < map.shape[axis];
      byte += at * map.stride_bytes[axis];
    }
    f(offset, byte, first, exists ? last : first);
    for (int axis = inner - 1; axis >= 0; --axis) {
      if (++index[axis] < map.box[axis]) break;
      index[axis] = 0;
    }
  }
}

/// Fails the launch for boxes that are illegal instructions on an H200: a box that does not start
/// at a multiple of 16 bytes along the last axis, or a store that starts before the tensor along
/// any axis.
void require_place(const char* operation, const CopyShape& shape, bool is_store, Place place) {
  constexpr const char* consequence = "; an illegal instruction on a chip";
  const int last = shape.map.rank - 1;
  if (std::int64_t{shape.at[last]} * shape.map.element_bytes %
          static_cast<std::int64_t>(copy_chunk_bytes) !=
      0) {
    running_worker(operation).fail(
        std::string(operation) + ": the last coordinate is " + std::to_string(shape.at[last]) +
            ", accepted are multiples of " +
            std::to_string(copy_chunk_bytes / shape.map.element_bytes) + consequence,
        place);
  }
  for (int axis = 0; is_store && axis <= last; ++axis) {
    if (shape.at[axis] >= 0) continue;
    running_worker(operation).fail(std::string(operation) + ": coordinate " + std::to_string(axis) +
                                       " is " + std::to_string(shape.at[axis]) +
                                       ", a store accepts none below 0" + consequence,
                                   place);
  }
}

CopyShape box_of(const char* operation, const void* map, const int* at, int rank,
                 const void* shared, bool is_store, Place place, bool is_im2col = false) {
  Worker& here = running_worker(operation);
  CopyShape shape;
  shape.is_box = true;
  std::memcpy(&shape.map, map, sizeof(shape.map));
  if (shape.map.mark != tensor_map_mark) {
    here.fail(std::string(operation) + ": this is no tensor map of make_tensor_map()", place);
  }
  if ((shape.map.pixels != 0) != is_im2col) {
    here.fail(std::string(operation) + ": the map is " + (is_im2col ? "not " : "") +
                  "one of make_im2col_map()",
              place);
  }
  if (shape.map.rank != rank) {
    here.fail(std::string(operation) + ": " + std::to_string(rank) +
                  " coordinates for a tensor map of " + std::to_string(shape.map.rank) + " axes",
              place);
  }
  shape.bytes = shape.map.element_bytes;
  for (int axis = 0; axis < rank; ++axis) {
    shape.at[axis] = at[axis];
    shape.bytes *= shape.map.box[axis];
  }
  if (is_im2col) shape.bytes *= shape.map.pixels;
  require_place(operation, shape, is_store, place);
  const std::size_t alignment =
      shape.map.swizzle_chunks == 0
          ? 128
          : 8 * (std::size_t{shape.map.swizzle_chunks} + copy_chunk_bytes);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(shared) -
                                               here.current().block->shared);
  require_shared(operation, shared, shape.bytes, place);
  if (offset % alignment != 0) {
    here.fail("misaligned address: " + std::string(operation) + " needs its box at a multiple of " +
                  std::to_string(alignment) + " bytes of shared memory",
              place);
  }
  return shape;
}

void round_row(std::byte* row, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, row + at, sizeof(value));
    value = round_to_tf32(value);
    std::memcpy(row + at, &value, sizeof(value));
  }
}

}  // namespace

void load_box(const CopyShape& shape, std::byte* to, const std::byte* block_memory) {
  if (shape.map.pixels != 0) {
    load_pixels(shape, to, block_memory);
    return;
  }
  const TensorMapFields& map = shape.map;
  const std::uint32_t bytes = row_bytes(map);
  const auto base = static_cast<std::size_t>(to - block_memory);
  std::byte row[256 * 8];  // the longest box row, of the widest elements
  for_each_row(shape,
               [&](std::size_t offset, std::int64_t byte, std::int64_t first, std::int64_t last) {
                 std::memset(row, 0, bytes);
                 if (first < last) {
                   const std::int64_t skip = first * map.element_bytes;
                   std::memcpy(row + skip, map.data + byte + skip,
                               static_cast<std::size_t>((last - first) * map.element_bytes));
                   if (map.rounds_to_tf32) round_row(row, bytes);
                 }
                 for (std::size_t chunk = 0; chunk < bytes; chunk += copy_chunk_bytes) {
                   std::memcpy(to + (swizzled_offset(map, base + offset + chunk) - base),
                               row + chunk, copy_chunk_bytes);
                 }
               });
}

namespace {

/// Calls f(address, bytes) for the part of each row of a tiled box that is in bounds.
template <class F>
void for_each_piece(const CopyShape& shape, F f) {
  const TensorMapFields& map = shape.map;
  if (map.pixels != 0) return;
  for_each_row(shape, [&](std::size_t, std::int64_t byte, std::int64_t first, std::int64_t last) {
    if (first == last) return;
    f(map.data + byte + first * map.element_bytes,
      static_cast<std::size_t>((last - first) * map.element_bytes));
  });
}

}  // namespace

record::CopyRange range_of(const CopyShape& shape) {
  record::ByteRanges rows;
  for_each_piece(shape, [&](const std::byte* address, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    rows.push_back({begin, begin + bytes});
  });
  return record::CopyRange(std::move(rows));
}

void note_box_read(record::Recorder& recorder, const record::Agent& agent, const CopyShape& shape) {
  if (!recorder.keeps_footprint() && !recorder.has_written(shape.map.data)) return;
  for_each_piece(shape, [&](const std::byte* address, std::size_t bytes) {
    recorder.copied(agent, address, bytes, record::Access::engine_read);
  });
}

void note_box_write(record::Recorder& recorder, const record::Agent& agent, const CopyShape& shape,
                    bool reduces) {
  for_each_piece(shape, [&](const std::byte* address, std::size_t bytes) {
    recorder.copied(agent, address, bytes,
                    reduces ? record::Access::atomic : record::Access::write);
  });
}

void store_box(const CopyShape& shape, const std::byte* from, std::size_t offset_in_block,
               BulkReduce reduce) {
  const TensorMapFields& map = shape.map;
  const std::uint32_t bytes = row_bytes(map);
  std::byte row[256 * 8];
  for_each_row(shape,
               [&](std::size_t offset, std::int64_t byte, std::int64_t first, std::int64_t last) {
                 if (first == last) return;
                 for (std::size_t chunk = 0; chunk < bytes; chunk += copy_chunk_bytes) {
                   const std::size_t at =
                       swizzled_offset(map, offset_in_block + offset + chunk) - offset_in_block;
                   std::memcpy(row + chunk, from + at, copy_chunk_bytes);
                 }
                 // Stores whole 16-byte pieces: bytes after the end of a row are overwritten up to
                 // the end of the last piece.
                 const auto end = static_cast<std::size_t>(last * map.element_bytes);
                 if (reduce != nullptr) {
                   reduce(map.data + byte, row, end);
                   return;
                 }
                 std::memcpy(map.data + byte, row,
                             (end + copy_chunk_bytes - 1) / copy_chunk_bytes * copy_chunk_bytes);
               });
}

void tensor_load(void* to, const void* map, const int* at, int rank, std::uint64_t* barrier,
                 Place place) {
  Worker& here = running_worker("tensor_load");
  require_shared("tensor_load", barrier, sizeof(*barrier), place);
  const CopyShape shape = box_of("tensor_load", map, at, rank, to, false, place);
  here.copies().issue(
      here, {shape, here.current().block, static_cast<std::byte*>(to), nullptr, barrier, place});
}

void tensor_load_multicast(void* to, const void* map, const int* at, int rank,
                           std::uint64_t* barrier, std::uint16_t ranks, Place place) {
  Worker& here = running_worker("tensor_load_multicast");
  require_shared("tensor_load_multicast", barrier, sizeof(*barrier), place);
  const CopyShape shape = box_of("tensor_load_multicast", map, at, rank, to, false, place);
  bool again = false;
  for_each_rank("tensor_load_multicast", ranks, place, [&](Block& block) {
    LateLoad load{shape,
                  &block,
                  static_cast<std::byte*>(in(block, to)),
                  nullptr,
                  static_cast<std::uint64_t*>(in(block, barrier)),
                  place};
    load.again = std::exchange(again, true);
    here.copies().issue(here, load);
  });
}

namespace {

void store(const char* operation, const void* map, const int* at, int rank, const void* from,
           const TensorReduction* reduction, Place place) {
  Worker& here = running_worker(operation);
  const CopyShape shape = box_of(operation, map, at, rank, from, true, place);
  BulkReduce reduce = nullptr;
  if (reduction != nullptr) {
    reduce = reduction_of(shape.map.dtype, *reduction);
    if (reduce == nullptr) {
      here.fail(std::string(operation) + ": the copy engine does not combine " +
                    std::string(to_string(shape.map.dtype)) + " so",
                place);
    }
  }
  Thread& self = here.current();
  here.copies().issue(here, LateStore{shape,
                                      &self,
                                      self.bulk_group,
                                      nullptr,
                                      static_cast<const std::byte*>(from),
                                      reduce,
                                      {},
                                      false,
                                      place});
}

}  // namespace

void tensor_store(const void* map, const int* at, int rank, const void* from, Place place) {
  store("tensor_store", map, at, rank, from, nullptr, place);
}

void tensor_reduce(const void* map, const int* at, int rank, const void* from,
                   TensorReduction reduction, Place place) {
  store("tensor_reduce", map, at, rank, from, &reduction, place);
}

void im2col_load(void* to, const void* map, const int* at, const int* offsets, int rank,
                 std::uint64_t* barrier, Place place) {
  Worker& here = running_worker("im2col_load");
  require_shared("im2col_load", barrier, sizeof(*barrier), place);
  CopyShape shape = box_of("im2col_load", map, at, rank, to, false, place, true);
  std::copy(offsets, offsets + rank - 2, shape.offsets);
  here.copies().issue(
      here, {shape, here.current().block, static_cast<std::byte*>(to), nullptr, barrier, place});
}

}  // namespace rung::simt
