// SPDX-License-Identifier: Apache-2.0
// The C functions by which a type of arrays exchanges tensors without Python objects in between, as
// DLPack 1.3 has them. A type offers a table of them in the attribute __dlpack_c_exchange_api__, a
// capsule named "dlpack_exchange_api"; its first releases had __c_dlpack_exchange_api__.
#pragma once

#include <cstdint>

#include "rung/core/dlpack_abi.hpp"

namespace rung::python {

struct ExchangeHeader {
  DLPackVersion version;
  ExchangeHeader* previous;  // the table of an older version, or null
};

struct ExchangeTable {
  ExchangeHeader header;
  void* allocate;      // not used: arrays are made by their library's own function
  void* to_managed;    // not used
  void* from_managed;  // not used
  /// Describes an array without owning it; the description is valid as long as the array lives.
  /// Nonzero: a Python error is set. May be null.
  int (*describe)(void* object, DLTensor* described);
  int (*current_stream)(DLDeviceType type, std::int32_t device, void** stream);
};

}  // namespace rung::python
