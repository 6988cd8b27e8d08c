// SPDX-License-Identifier: Apache-2.0
// Marked words: flagged packets (as in NCCL's LL protocol) by which blocks send values to the block
// that combines them, without a ticket and without fences. A value is sent in words of 16 bytes,
// each with 8 bytes of payload and a mark. A word is stored and loaded atomically, so that a reader
// that sees the mark has the payload: one trip through memory instead of three (value, ticket,
// value).
//
//   MarkedWord* const to = words + block * words_of_value<Value>;
//   if (block != last) send_marked(to, mine, mark);            // one thread
//   ... in the last block: value = receive_marked<Value>(to, mark) for each other block
//
// Owners   one thread sends a value and one receives it. The receiver is in the block with the
//          highest index: blocks start in the order of their indices, so that all senders have
//          started.
// Marks    Packet: the mark is 1, and the reader clears it. Plain words: the mark differs from
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

/// Buffer for a value of up to 16 bytes; zero before and after the launch.
struct Packet {
  static constexpr int words = 2;
  MarkedWord word[words];
};

template <class Value>
inline constexpr int words_of_value = (static_cast<int>(sizeof(Value)) + 7) / 8;

/// Sends a value in words marked with `mark`.
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

/// Polls for a value in words marked with `mark`, and returns it.
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
/// Polls a packet for its value, clears the packet and returns the value.
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
