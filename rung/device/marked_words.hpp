// SPDX-License-Identifier: Apache-2.0
// Marked words: how blocks hand values of up to 16 bytes to the block that combines them, without a
// ticket and without fences (flagged packets, as in NCCL's LL protocol). A value goes out in words
// of 16 bytes that carry 8 bytes of it and a mark. A word is stored and loaded in one piece, so
// that whoever sees the mark has the rest: one way through memory instead of three (value, ticket,
// value).
//
//   MarkedWord* const to = words + block * words_of_value<Value>;
//   if (block != last) send_marked(to, mine, mark);            // by one thread
//   ... in the last block: value = receive_marked<Value>(to, mark) for each of the others
//
// Owners   one thread sends a value and one receives it. The receiver is in the block with the
//          highest index: blocks start in the order of their indices, so that all it waits for have
//          started.
// Marks    Packet: the mark is 1, and the reader clears it. Plain words: a mark that differs from
//          launch to launch and is never cleared.
// Cost     a 16-byte store and a polling load per 8 bytes of the value.
#pragma once

#include <cstdint>
#include <cstring>

#include "rung/device/ptx/memory.hpp"

namespace rung::inline RUNG_TARGET {

struct alignas(16) MarkedWord {
  std::uint64_t payload;
  std::uint64_t mark;
};

/// Room for a value of 16 bytes; zero before the launch, and again after it.
struct Packet {
  static constexpr int words = 2;
  MarkedWord word[words];
};

template <class Value>
inline constexpr int words_of_value = (static_cast<int>(sizeof(Value)) + 7) / 8;

/// Sends a value in words with this mark.
template <class Value>
__device__ __forceinline__ void send_marked(MarkedWord* to, const Value& value,
                                            std::uint64_t mark) {
  std::uint64_t payload[words_of_value<Value>] = {};
  memcpy(payload, &value, sizeof(Value));
#pragma unroll
  for (int i = 0; i < words_of_value<Value>; ++i) {
    ptx::store_relaxed(to + i, MarkedWord{payload[i], mark});
  }
}
template <class Value>
__device__ __forceinline__ void send_marked(Packet& to, const Value& value) {
  static_assert(words_of_value<Value> <= Packet::words);
  send_marked(to.word, value, 1);
}

/// Waits for a value in words with this mark.
template <class Value>
__device__ __forceinline__ Value receive_marked(const MarkedWord* from, std::uint64_t mark) {
  std::uint64_t payload[words_of_value<Value>];
#pragma unroll
  for (int i = 0; i < words_of_value<Value>; ++i) {
    MarkedWord word;
    do {
      word = ptx::load_relaxed(from + i);
    } while (word.mark != mark);
    payload[i] = word.payload;
  }
  Value value;
  memcpy(&value, payload, sizeof(Value));
  return value;
}
/// Waits for a value, and clears its packet.
template <class Value>
__device__ __forceinline__ Value receive_marked(Packet& from) {
  const auto value = receive_marked<Value>(from.word, 1);
#pragma unroll
  for (int i = 0; i < words_of_value<Value>; ++i) {
    ptx::store_relaxed(&from.word[i], MarkedWord{0, 0});
  }
  return value;
}

}  // namespace rung::inline RUNG_TARGET
